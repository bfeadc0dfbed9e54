import type { ChatTurn } from './chat-turn.ts';
import type { SavedTurn, SavedTurnStore } from './saved-turns.ts';

/**
 * How long a reload that has begun may still run this page: its address is the one from before the service named the
 * conversation. As long as anything is waited for: on a busy machine the console's server answers late.
 */
const RELOAD_MS = 60_000;

interface KeptMessagesOptions {
  readonly saved: SavedTurnStore;
  /** Keeps those of ended turns too. */
  readonly keepEnded: boolean;
}

/** What a reload would lose of a conversation: its messages whose turn has not ended, saved under its name. */
export class KeptMessages {
  readonly #options: KeptMessagesOptions;
  /** The body of each message that is not stored yet, by the turn's key. */
  readonly #bodies = new Map<string, SavedTurn['body']>();
  /** Deletes what was saved under the name from before the service named the conversation. */
  #forget: (() => void) | undefined;

  constructor(options: KeptMessagesOptions) {
    this.#options = options;
  }

  set(key: string, body: SavedTurn['body']): void {
    this.#bodies.set(key, body);
  }

  get(key: string): SavedTurn['body'] | undefined {
    return this.#bodies.get(key);
  }

  delete(key: string): void {
    this.#bodies.delete(key);
  }

  end(key: string): void {
    if (!this.#options.keepEnded) this.#bodies.delete(key);
  }

  /** What an earlier page has saved. */
  load(name: string): readonly SavedTurn[] {
    const kept = this.#options.saved.load(name);
    for (const { key, body } of kept) this.#bodies.set(key, body);
    return kept;
  }

  save(name: string, turns: readonly ChatTurn[]): void {
    this.#options.saved.save(name, this.#select(turns));
  }

  /**
   * A reload between the acceptance and the new address finds the turn under the old name, and with it the
   * conversation.
   */
  saveForReload(name: string, all: readonly ChatTurn[]): void {
    const { saved } = this.#options;
    const turns = this.#select(all);
    saved.save(name, turns);
    const forget = (): void => {
      clearTimeout(timer);
      this.#forget = undefined;
      if (saved.load(name)[0]?.key === turns[0]?.key) saved.save(name, []);
    };
    const timer = setTimeout(forget, RELOAD_MS);
    this.#forget = forget;
  }

  close(): void {
    this.#forget?.();
  }

  #select(turns: readonly ChatTurn[]): SavedTurn[] {
    return turns.flatMap(({ key, turnId, question, state }): SavedTurn[] => {
      const body = this.#bodies.get(key);
      const kept = this.#options.keepEnded || (state.at !== 'done' && state.at !== 'failed');
      if (body === undefined || question === null || !kept) return [];
      return [{ key, turnId, question: { ...question, attachments: [...question.attachments] }, body }];
    });
  }
}
