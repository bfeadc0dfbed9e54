import { findQueued, findWholeQuestion, isUnderWay, type ChatTurn, type Question } from './chat-turn.ts';
import type { GatewayClient } from './gateway-client.ts';

/** The conversation whose messages wait. */
export interface QueueHost {
  readonly gateway: Pick<GatewayClient, 'takeBack'>;
  readonly read: () => readonly ChatTurn[];
  readonly show: (turns: readonly ChatTurn[]) => void;
  /** They are gone from the page, and a reload does not bring them back. */
  readonly forget: (turns: readonly ChatTurn[]) => void;
  readonly send: (message: Question) => void;
  readonly stop: (key: string) => Promise<void>;
}

/** What the user does with messages of a conversation that wait for the agent, or that were never accepted. */
export class QueuedMessages {
  readonly #host: QueueHost;
  readonly #takenBack = new Set<string>();

  constructor(host: QueueHost) {
    this.#host = host;
  }

  /** This page shows it no more. */
  wasTakenBack(turnId: string | null): boolean {
    return turnId !== null && this.#takenBack.has(turnId);
  }

  /**
   * Takes a message back: here at once, and at the service when it has heard of it. Returns the message, where all of
   * it is known.
   */
  takeBack(key: string): Question | null {
    const turn = this.#host.read().find((other) => other.key === key);
    if (turn?.state.at === 'unsent') this.#host.forget([turn]);
    else if (turn !== undefined && findQueued(this.#host.read()).includes(turn)) void this.#cancel([turn]);
    else return null;
    const isCut = turn.question?.isExcerpt === true && turn.question.text.endsWith('…');
    return isCut ? null : turn.question;
  }

  /**
   * Writes a waiting message anew. Those of this page that wait behind it stay behind it. Resolves with false when it
   * waits no more: it stays as it was.
   */
  async edit(key: string, text: string): Promise<boolean> {
    const queued = findQueued(this.#host.read());
    const index = queued.findIndex((turn) => turn.key === key);
    const question = queued[index]?.question;
    if (question == null) return false;
    const later = queued.slice(index + 1).filter(canBeSentAgain);
    const cancelled = await this.#cancel([...queued.slice(index, index + 1), ...later]);
    this.#sendAgain(cancelled.map((turn) => (turn.key === key ? { ...turn, question: { ...question, text } } : turn)));
    return cancelled.some((turn) => turn.key === key);
  }

  /** Stops the running turn; this message is the next one. Those that stood before it go behind all, in their order. */
  async sendNow(key: string): Promise<void> {
    const turns = this.#host.read();
    const running = turns.find(isUnderWay);
    const queued = findQueued(turns);
    const index = queued.findIndex((turn) => turn.key === key);
    if (running === undefined || index === -1) return;
    const cancelled = await this.#cancel(queued.slice(0, index).filter(canBeSentAgain));
    await this.#host.stop(running.key);
    this.#sendAgain(cancelled);
  }

  #sendAgain(turns: readonly ChatTurn[]): void {
    for (const { question } of turns) if (question !== null) this.#host.send(question);
  }

  /** Returns those that were cancelled; the others, and those that had ended unheard of, are shown again. */
  async #cancel(turns: readonly ChatTurn[]): Promise<readonly ChatTurn[]> {
    const before = this.#host.read();
    for (const { turnId } of turns) this.#takenBack.add(turnId ?? '');
    this.#host.show(before.filter((turn) => !turns.includes(turn)));
    const outcomes = await Promise.allSettled(turns.map(async ({ turnId }) => this.#host.gateway.takeBack(turnId ?? '')));
    const cancelled = turns.filter((_turn, index) => {
      const outcome = outcomes[index];
      return outcome?.status === 'fulfilled' && outcome.value;
    });
    const refused = turns.filter((turn) => !cancelled.includes(turn));
    if (refused.length > 0) this.#showAgain(before, refused);
    this.#host.forget(cancelled);
    return cancelled;
  }

  #showAgain(before: readonly ChatTurn[], turns: readonly ChatTurn[]): void {
    for (const { turnId } of turns) this.#takenBack.delete(turnId ?? '');
    const now = this.#host.read();
    const known = new Map(now.map((turn) => [turn.key, turn]));
    const old = before.flatMap((turn) => (turns.includes(turn) ? [turn] : (known.get(turn.key) ?? [])));
    this.#host.show([...old, ...now.filter(({ key }) => before.every((turn) => turn.key !== key))]);
  }
}

function canBeSentAgain(turn: ChatTurn): boolean {
  return findWholeQuestion(turn) !== null;
}
