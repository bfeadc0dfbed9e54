import { keepTyping } from '@concierge/channel';
import { background, type Log } from '@concierge/runtime';
import type { TurnRun } from '@concierge/turn';
import type { TurnsToAnswer } from '../turn/collected-turns.ts';
import { destinationOf, type ChannelSenders } from './channel-senders.ts';

export interface ChannelTypingOptions {
  readonly senders: ChannelSenders;
  readonly log: Log;
}

/**
 * Shows the contact that an answer is being written. It runs beside the turn: it delays nothing, and no failure of it
 * reaches the turn.
 */
export class ChannelTyping {
  readonly #options: ChannelTypingOptions;

  constructor(options: ChannelTypingOptions) {
    this.#options = options;
  }

  /** Shows typing until the result is disposed or the turn is stopped. */
  show(run: TurnRun, turns: TurnsToAnswer): Disposable {
    const stop = new AbortController();
    if (run.turn.chatApp !== undefined) {
      background(this.#keepTyping(run, turns, AbortSignal.any([run.signal, stop.signal])), this.#options.log);
    }
    return {
      [Symbol.dispose]: () => {
        stop.abort();
      },
    };
  }

  /** A channel that shows typing as an answer to a message gets the newest message. */
  async #keepTyping({ scope, turn }: TurnRun, turns: TurnsToAnswer, signal: AbortSignal): Promise<void> {
    const chatApp = turns.at(-1)?.chatApp;
    // A staff member has the conversation: the service does not announce what they write.
    if (chatApp === undefined || (await scope.handoffs.isPaused(turn.sessionId))) return;
    const sender = await this.#options.senders.of(scope, turn);
    if (sender !== undefined) await keepTyping(sender, { ...destinationOf(chatApp), inboundMessageId: chatApp.messageRef }, signal);
  }
}
