const WARN = '4'.charCodeAt(0);
/** Where the level of a line stands: pino writes it first, `{"level":30,`. */
const LEVEL_AT = '{"level":'.length;
const LINE_MAX_CHARACTERS = 4000;
const PENDING_MAX = 2000;
const TURNS_MAX = 2000;
const LINES_OF_TURN_MAX = 20;

/**
 * Lines of this process's log that operators look up: warnings and errors, and of a turn that has one all lines, those
 * before it included. Bounded: what is not taken in time goes, the oldest first.
 */
export class KeptLines {
  #isOpen = false;
  #pending: string[] = [];
  /** Lines of turns that have no warning so far; empty for those that have one. */
  readonly #ofTurns = new Map<string, string[] | null>();

  /** Before it nothing is kept: a process without a place for lines does not pay for them. */
  open(): void {
    this.#isOpen = true;
  }

  /** A line as it is written, after secrets were removed. */
  add(line: string): void {
    if (!this.#isOpen) return;
    const isWarning = line.charCodeAt(LEVEL_AT) >= WARN && line.charCodeAt(LEVEL_AT) <= '9'.charCodeAt(0);
    const turnId = readTurnId(line);
    if (turnId === undefined) {
      if (isWarning) this.#keep(line);
      return;
    }
    const held = this.#ofTurns.get(turnId);
    this.#ofTurns.delete(turnId);
    if (isWarning || held === null) {
      for (const before of held ?? []) this.#keep(before);
      this.#keep(line);
      this.#ofTurns.set(turnId, null);
    } else {
      this.#ofTurns.set(turnId, [...(held ?? []), line.slice(0, LINE_MAX_CHARACTERS)].slice(-LINES_OF_TURN_MAX));
    }
    const [oldest] = this.#ofTurns.keys();
    if (this.#ofTurns.size > TURNS_MAX && oldest !== undefined) this.#ofTurns.delete(oldest);
  }

  /** What was kept since the last call. */
  take(): string[] {
    const taken = this.#pending;
    this.#pending = [];
    return taken;
  }

  #keep(line: string): void {
    if (this.#pending.length >= PENDING_MAX) this.#pending.shift();
    this.#pending.push(line.trimEnd().slice(0, LINE_MAX_CHARACTERS));
  }
}

const TURN_FIELD = '"turnId":"';

function readTurnId(line: string): string | undefined {
  const at = line.indexOf(TURN_FIELD);
  if (at === -1) return undefined;
  const from = at + TURN_FIELD.length;
  const end = line.indexOf('"', from);
  return end === -1 ? undefined : line.slice(from, end);
}

/** Those of this process: a process has one log. */
export const keptLines = new KeptLines();
