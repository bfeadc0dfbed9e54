import { AppError, limits } from '@concierge/contract';

/** Room for one body. Disposing it returns the room. */
export interface BodyRoom extends Disposable {
  /** The body is read and has so many bytes. */
  shrinkTo(bytes: number): void;
}

interface Pool {
  held: number;
  readonly ofPeers: Map<string, number>;
}

/**
 * Limits the memory for request bodies, in total and for each peer. A body that does not fit is refused before it is
 * read. Bodies larger than any JSON request of ours have a separate pool, so that they never take the place of a chat
 * message.
 */
export class BodyBudget {
  readonly #small: Pool = { held: 0, ofPeers: new Map() };
  readonly #large: Pool = { held: 0, ofPeers: new Map() };

  /** @throws AppError `overloaded` */
  reserve(peer: string, bytes: number): BodyRoom {
    const pool = bytes > limits.jsonBodyMaxBytes ? this.#large : this.#small;
    const ofPeer = pool.ofPeers.get(peer) ?? 0;
    if (pool.held + bytes > limits.bodiesMaxBytes || ofPeer + bytes > limits.bodiesOfPeerMaxBytes)
      throw new AppError('overloaded', 'Too many large requests are being answered.', {
        retryAfterSeconds: 2,
        headers: { Connection: 'close' },
      });
    let held = 0;
    const hold = (next: number): void => {
      const change = next - held;
      held = next;
      pool.held += change;
      const rest = (pool.ofPeers.get(peer) ?? 0) + change;
      if (rest === 0) pool.ofPeers.delete(peer);
      else pool.ofPeers.set(peer, rest);
    };
    hold(bytes);
    return {
      shrinkTo: (read) => {
        hold(Math.min(held, read));
      },
      [Symbol.dispose]: () => {
        hold(0);
      },
    };
  }
}
