import { AppError } from '@concierge/contract';
import { waitForAnswer } from '@concierge/runtime';
import type { Counts, FromProcess } from './messages.ts';

/** Where a process sends what it has. */
type Report = (message: Extract<FromProcess, { readonly counts: unknown }>) => void;

/** A limit may be exceeded by what several processes admit within this time, but where they agree first. */
const REPORT_EVERY_MS = 10;
const AGREE_TIMEOUT_MS = 2000;

/**
 * Counts for limits that hold over all processes of a gateway, by name: each process has its own part, and what the
 * others have as they last reported it. Without a `report` there are no others.
 */
export class SharedCounts {
  readonly #report: Report | undefined;
  readonly #own = new Map<string, number>();
  readonly #others = new Map<string, number>();
  readonly #changed = new Set<string>();
  readonly #agreeing = new Map<number, () => void>();
  #reports = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(report?: Report) {
    this.#report = report;
  }

  /** Whether other processes count, too. */
  get isShared(): boolean {
    return this.#report !== undefined;
  }

  /** Of all processes together. */
  total(name: string): number {
    return (this.#own.get(name) ?? 0) + (this.#others.get(name) ?? 0);
  }

  add(name: string, change: number): void {
    set(this.#own, name, (this.#own.get(name) ?? 0) + change);
    if (this.#report === undefined) return;
    this.#changed.add(name);
    this.#timer ??= setTimeout(() => this.#send(), REPORT_EVERY_MS).unref();
  }

  /**
   * Resolves when all others know what was added here, and this process what they added before: of two that add at
   * once, at least one sees both. @throws AppError `overloaded` when the primary does not answer
   */
  async agree(timeoutMs = AGREE_TIMEOUT_MS): Promise<void> {
    const report = this.#send();
    if (report === undefined) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#agreeing.set(report, resolve);
    // What the primary has answered while this process stood still is read first.
    const late = waitForAnswer(timeoutMs).then(() => {
      throw new AppError('overloaded', undefined, { retryAfterSeconds: 2 });
    });
    try {
      await Promise.race([promise, late]);
    } finally {
      this.#agreeing.delete(report);
    }
  }

  /** Reports what was added since the last time at once. */
  flush(): void {
    this.#send();
  }

  /** What the other processes have together, of some names. */
  hearOthers(counts: Counts): void {
    for (const [name, count] of counts) set(this.#others, name, count);
  }

  /** The primary has counted the report with this number. */
  hearCounted(report: number): void {
    this.#agreeing.get(report)?.();
  }

  #send(): number | undefined {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#reports += 1;
    this.#report?.({ counts: [...this.#changed].map((name) => [name, this.#own.get(name) ?? 0]), report: this.#reports });
    this.#changed.clear();
    return this.#report === undefined ? undefined : this.#reports;
  }
}

/** The primary's side: what each process has, and what each must know of the others. */
export class CountExchange {
  readonly #ofProcesses = new Map<number, Map<string, number>>();
  readonly #tell: (processId: number, others: Counts) => void;

  constructor(tell: (processId: number, others: Counts) => void) {
    this.#tell = tell;
  }

  /** A process that reports for the first time learns what the others have. */
  count(processId: number, counts: Counts): void {
    let own = this.#ofProcesses.get(processId);
    if (own === undefined) {
      own = new Map();
      this.#ofProcesses.set(processId, own);
      this.#tellOne(processId, new Set([...this.#ofProcesses.values()].flatMap((part) => [...part.keys()])));
    }
    for (const [name, count] of counts) set(own, name, count);
    this.#tellOthers(processId, new Set(counts.map(([name]) => name)));
  }

  /** What a process had ended with it. */
  forget(processId: number): void {
    const names = new Set(this.#ofProcesses.get(processId)?.keys());
    this.#ofProcesses.delete(processId);
    this.#tellOthers(processId, names);
  }

  #tellOthers(processId: number, names: ReadonlySet<string>): void {
    for (const other of this.#ofProcesses.keys()) if (other !== processId) this.#tellOne(other, names);
  }

  #tellOne(processId: number, names: ReadonlySet<string>): void {
    if (names.size === 0) return;
    const others = [...this.#ofProcesses].filter(([id]) => id !== processId).map(([, part]) => part);
    const sum = (name: string): number => others.reduce((total, part) => total + (part.get(name) ?? 0), 0);
    this.#tell(
      processId,
      [...names].map((name) => [name, sum(name)]),
    );
  }
}

/** A name is kept only while there is something of it. */
function set(counts: Map<string, number>, name: string, count: number): void {
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
