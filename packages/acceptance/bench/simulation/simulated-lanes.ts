import { Line } from './stations.ts';

/** A turn as lanes see it. */
export interface LanedTurn {
  readonly tenant: number;
  /** Unique among all tenants. */
  readonly session: number;
}

interface Share {
  admitted: number;
  readonly line: Line<number>;
}

/**
 * The rules of `packages/turn/src/lua`: the turns of a session run one after the other; of a tenant as many lanes are
 * admitted as its share, the others stand in its line; a lane that goes on stands at the end of it. All turns are of
 * depth 0, and none collects others.
 */
export class SimulatedLanes<Turn extends LanedTurn> {
  readonly #share: number;
  readonly #wake: (head: Turn) => void;
  readonly #lanes = new Map<number, Line<Turn> & { head?: Turn }>();
  readonly #shares = new Map<number, Share>();

  /** `wake`: this turn may take a slot now. */
  constructor(share: number, wake: (head: Turn) => void) {
    this.#share = share;
    this.#wake = wake;
  }

  accept(turn: Turn): void {
    const lane = this.#lanes.get(turn.session);
    if (lane !== undefined) {
      lane.add(turn);
      return;
    }
    const begun: Line<Turn> & { head?: Turn } = new Line<Turn>();
    begun.head = turn;
    this.#lanes.set(turn.session, begun);
    this.#lineUp(turn);
  }

  /** The head of this lane has ended. */
  finish({ tenant, session }: Turn): void {
    const share = this.#openShare(tenant);
    share.admitted -= 1;
    const lane = this.#lanes.get(session);
    const next = lane?.take();
    if (lane === undefined || next === undefined) {
      this.#lanes.delete(session);
      this.#admit(tenant, share);
    } else {
      lane.head = next;
      this.#lineUp(next);
    }
    if (share.admitted === 0 && share.line.length === 0) this.#shares.delete(tenant);
  }

  #lineUp({ tenant, session }: Turn): void {
    const share = this.#openShare(tenant);
    share.line.add(session);
    this.#admit(tenant, share);
  }

  #admit(tenant: number, share: Share): void {
    while (share.admitted < this.#share) {
      const session = share.line.take();
      if (session === undefined) return;
      const head = this.#lanes.get(session)?.head;
      if (head === undefined) throw new Error(`a lane of tenant ${String(tenant)} stands in line and has no turn`);
      share.admitted += 1;
      this.#wake(head);
    }
  }

  #openShare(tenant: number): Share {
    let share = this.#shares.get(tenant);
    if (share === undefined) {
      share = { admitted: 0, line: new Line() };
      this.#shares.set(tenant, share);
    }
    return share;
  }
}
