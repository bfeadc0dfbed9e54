/** What the auditor looks for. */
export const invariants = {
  I1: 'no accepted turn is lost',
  I2: 'none is answered twice',
  I3: 'order of acceptance in every session',
  I4: 'session files are whole',
  I5: 'side effects happen at most once',
  I7: 'one Idempotency-Key, one turn',
  I9: 'resumed events: no gap, no repeat',
  I11: 'SIGTERM loses nothing and exits 0',
  I10: 'a turn that kills its worker ends after three starts',
  I13: 'a quiet tenant does not wait behind a loud one',
  I14: 'what cannot be accepted is refused with Retry-After',
  I15: 'accepted turns are never reported to clients as missing',
  I19: 'order of answers, whatever Redis did in between',
  I20: 'every reader ends with what the session file says',
  I21: 'no promise rests on two clocks agreeing',
  I22: 'a neighbour of a poison turn is answered',
  I23: 'a hung event loop is ended within 15 s',
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
    | 'not reached'
    | 'failed'
    | 'innocent failed'
    | 'other starts'
    | 'end differs'
    | 'reply differs'
    | 'slow recovery'
    | 'hung'
    | 'still ready'
    | 'no refusal'
    | 'behind';
  /** What it is about: a turn, a session, a process. */
  readonly subject: string;
  readonly detail: string;
}
