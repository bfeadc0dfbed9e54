import { ConciergeError, randomKey } from '@concierge/client';
import type { WidgetConversation, WidgetMessage } from '@concierge/contract';
import type { BrowserMemory, KeptMessage } from './browser-memory.ts';
import type { Gateway, Who } from './gateway.ts';
import { describeFailure, MessageStream } from './message-stream.ts';

/** One message as it is shown. */
export interface Entry {
  readonly id: string;
  readonly from: WidgetMessage['from'];
  readonly text: string;
  /** `typing`: no text has come yet. `growing`: more comes. */
  readonly state: 'still' | 'typing' | 'growing';
}

/** What went wrong with a message, and the message that may be tried again. */
export interface Trouble {
  readonly key: string;
  readonly words: string;
}

export interface ConversationOptions {
  readonly gateway: Gateway;
  readonly memory: BrowserMemory;
  /** The same visitor each time, with the current token. */
  readonly who: () => Who;
  readonly onChange: () => void;
}

/** Messages that wait for their answer at once: each holds a connection, of which a browser has six. */
const OPEN_AT_MOST = 3;

/**
 * One visitor's conversation: what the service sends, and after it the messages that are under way here or in another
 * tab.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  #answer: WidgetConversation = { messages: [], withPerson: false, askAgainSeconds: 60 };
  #tag: string | null = null;
  #streams: MessageStream[] = [];
  /**
   * Every key that was run here: a message that has ended here is not taken up again because another tab is slower.
   */
  readonly #known = new Set<string>();
  #refreshing: Promise<void> | null = null;
  #problem: string | null = null;
  #left = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  get entries(): Entry[] {
    const own = new Set(this.#streams.map(({ turnId }) => turnId));
    const stored = this.#answer.messages
      .filter(({ turnId }) => !own.has(turnId))
      .map(({ id, from, text }): Entry => ({ id, from, text, state: 'still' }));
    return [...stored, ...this.#streams.flatMap((stream) => listEntries(stream))];
  }

  get troubles(): Trouble[] {
    return this.#streams.flatMap(({ key, trouble }) => (trouble === null ? [] : [{ key, words: trouble }]));
  }

  /** Why the messages so far could not be loaded; null when they could. */
  get problem(): string | null {
    return this.#problem;
  }

  get withPerson(): boolean {
    return this.#answer.withPerson;
  }

  /** The id of the last message that the service sent; null before there is one. */
  get lastMessageId(): string | null {
    return this.#answer.messages.at(-1)?.id ?? null;
  }

  /**
   * Counts the messages from others after this one. A message that the service no longer sends is older than all that
   * it sends.
   */
  countAfter(messageId: string): number {
    const at = this.#answer.messages.findIndex(({ id }) => id === messageId);
    return this.#answer.messages.slice(at + 1).filter(({ from }) => from !== 'visitor').length;
  }

  get askAgainMs(): number {
    return this.#answer.askAgainSeconds * 1000;
  }

  get isAnswering(): boolean {
    return this.#streams.some(({ state }) => state === 'open');
  }

  get maySend(): boolean {
    return this.#streams.filter(({ state }) => state === 'open').length < OPEN_AT_MOST;
  }

  /** Goes on with what was under way when the page was left. */
  async begin(): Promise<void> {
    this.takeUpKept();
    await this.refresh();
  }

  /**
   * Messages that another tab has sent, or that were on their way before a reload. Sent again they are the same
   * messages.
   */
  takeUpKept(): void {
    const kept = this.#options.memory.kept(this.#options.who());
    for (const message of kept) if (!this.#known.has(message.key)) this.#run(message);
  }

  send(text: string): void {
    this.#run({ key: randomKey(), text, turnId: null });
  }

  /**
   * Retries: a message that the service never accepted is sent again as the same one; one that failed there is sent as
   * a new one.
   */
  retry(key: string): void {
    const failed = this.#streams.find((stream) => stream.key === key);
    if (failed === undefined || failed.state !== 'failed') return;
    this.#streams = this.#streams.filter((stream) => stream !== failed);
    this.#run({ key: failed.turnId === null ? key : randomKey(), text: failed.text, turnId: null });
  }

  stop(): void {
    for (const stream of this.#streams) void stream.stop().catch(() => undefined);
  }

  /** Asks for new messages. Never rejects. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#ask().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Ends the conversation: nothing of it is shown or kept any more. */
  leave(): void {
    this.#left = true;
    for (const stream of this.#streams) stream.leave();
  }

  async #ask(): Promise<void> {
    const { gateway, who, onChange } = this.#options;
    try {
      const answer = await gateway.conversation(who(), this.#tag);
      if (answer !== null) ({ tag: this.#tag, conversation: this.#answer } = answer);
      this.#problem = null;
    } catch (error) {
      this.#problem = describeFailure(ConciergeError.from(error).code);
    }
    const stored = new Set(this.#answer.messages.map(({ turnId }) => turnId));
    this.#streams = this.#streams.filter(({ state, turnId }) => state !== 'done' || turnId === null || !stored.has(turnId));
    if (!this.#left) onChange();
  }

  #run(message: KeptMessage): void {
    const { gateway, who } = this.#options;
    const stream = new MessageStream({ gateway, who, message, onChange: () => this.#changed() });
    this.#streams.push(stream);
    this.#known.add(message.key);
    this.#changed();
    void stream.run().then(async () => {
      // An answer that was being fetched when this one ended may be older than it.
      await this.#refreshing;
      await this.refresh();
    });
  }

  #changed(): void {
    if (this.#left) return;
    const { memory, who, onChange } = this.#options;
    const others = memory.kept(who()).filter(({ key }) => !this.#known.has(key));
    memory.keep(who(), [...others, ...this.#streams.filter(({ state }) => state === 'open')]);
    onChange();
  }
}

function listEntries(stream: MessageStream): Entry[] {
  const { key, text, reply } = stream;
  const isOpen = stream.state === 'open';
  const question: Entry = { id: `${key}.said`, from: 'visitor', text, state: 'still' };
  if (reply === '' && !isOpen) return [question];
  const state = !isOpen ? 'still' : reply === '' ? 'typing' : 'growing';
  return [question, { id: `${key}.reply`, from: 'agent', text: reply, state }];
}
