import { limits } from '@concierge/contract';

/** A stream that gets heartbeats. */
export interface Beating {
  /** When something was last written, in milliseconds of `performance.now()`. */
  readonly quietSinceMs: number;
  beat(): void;
}

const TICK_MS = 1000;
const SLOTS = Math.round(limits.sseHeartbeatMs / TICK_MS);

/**
 * One timer for all streams: each stands in the slot in which its silence may have lasted long enough; one that has
 * sent something since moves on.
 */
export class HeartbeatWheel implements Disposable {
  readonly #slots: readonly Set<Beating>[] = Array.from({ length: SLOTS }, () => new Set<Beating>());
  readonly #slotOf = new Map<Beating, number>();
  readonly #timer: NodeJS.Timeout;
  #hand = 0;

  constructor() {
    this.#timer = setInterval(() => {
      this.tick(performance.now());
    }, TICK_MS);
    this.#timer.unref();
  }

  add(member: Beating): void {
    this.#put(member, SLOTS - 1);
  }

  remove(member: Beating): void {
    const slot = this.#slotOf.get(member);
    if (slot === undefined) return;
    this.#slots[slot]?.delete(member);
    this.#slotOf.delete(member);
  }

  /** Turns the wheel by one slot. Public for tests; the timer calls it every second. */
  tick(nowMs: number): void {
    this.#hand = (this.#hand + 1) % SLOTS;
    const due = [...(this.#slots[this.#hand] ?? [])];
    for (const member of due) {
      const silentMs = nowMs - member.quietSinceMs;
      // Half a tick of tolerance: a timer that comes a little early must not cost a whole round.
      const late = silentMs >= limits.sseHeartbeatMs - TICK_MS / 2;
      if (late) member.beat();
      this.remove(member);
      this.#put(member, late ? SLOTS : Math.max(1, Math.ceil((limits.sseHeartbeatMs - silentMs) / TICK_MS)));
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #put(member: Beating, ticksAhead: number): void {
    const slot = (this.#hand + ticksAhead) % SLOTS;
    this.#slots[slot]?.add(member);
    this.#slotOf.set(member, slot);
  }
}
