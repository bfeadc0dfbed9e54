/** What the auditor looks for. Numbers as in the list of invariants (docs/operating.md, "What must hold"). */
export const invariants = {
  I1: 'no accepted turn is lost',
  I2: 'none is answered twice',
  I3: 'order of acceptance in every session',
  I4: 'session files are whole',
  I5: 'side effects happen at most once',
  I7: 'one Idempotency-Key, one turn',
  I9: 'resumed events: no gap, no repeat',
  I11: 'SIGTERM loses nothing and exits 0',
  I15: 'clients are never told that what was accepted is not there',
  fence: 'a worker that lost its lease was refused',
  points: 'every fail point was reached',
} as const;

export type InvariantId = keyof typeof invariants;

/** One broken promise. `kind` is what a test asks for. */
export interface Finding {
  readonly invariant: InvariantId;
  readonly kind:
    | 'lost'
    | 'unanswered'
    | 'unacknowledged'
    | 'left in the inbox'
    | 'doubled'
    | 'two endings'
    | 'disorder'
    | 'broken file'
    | 'broken revisions'
    | 'effect doubled'
    | 'effect missing'
    | 'two turns'
    | 'repeat'
    | 'wrong order'
    | 'text differs'
    | 'tools differ'
    | 'no start'
    | 'bad exit'
    | 'refused'
    | 'no fence'
    | 'not reached';
  /** What it is about: a turn, a session, a process. */
  readonly subject: string;
  readonly detail: string;
}
