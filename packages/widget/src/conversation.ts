import { ConciergeError, randomKey, ReplyText, streamEvents } from '@concierge/client';
import type { VisitorEvent, WidgetConversation, WidgetMessage } from '@concierge/contract';
import type { BrowserMemory, KeptMessage } from './browser-memory.ts';
import type { Gateway, KeptFile, Who } from './gateway.ts';

/** One message as it is shown. */
export interface Entry {
  readonly id: string;
  readonly from: WidgetMessage['from'];
  readonly text: string;
  /** The names of what was sent with it. */
  readonly files: readonly string[];
  /** Null: now, or not known. */
  readonly atMs: number | null;
  /** `typing`: no text has come yet. `growing`: more comes. */
  readonly state: 'still' | 'typing' | 'growing';
}

/** The code of what went wrong with a message, and the message that may be tried again. */
export interface Trouble {
  readonly key: string;
  readonly code: string;
}

export interface ConversationOptions {
  readonly gateway: Gateway;
  readonly memory: BrowserMemory;
  /** The same visitor each time, with the current token. */
  readonly who: () => Who;
  readonly onChange: () => void;
}

/**
 * A message that was sent here, and the answer to it: open → done | failed. A failed one is tried again as a new one.
 */
interface SentMessage extends KeptMessage {
  turnId: string | null;
  readonly reply: ReplyText;
  readonly atMs: number;
  state: 'open' | 'done' | 'failed';
  /** The code of why it has failed. */
  trouble: string | null;
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
  #sent: SentMessage[] = [];
  /**
   * Every key that was run here: a message that has ended here is not taken up again because another tab is slower.
   */
  readonly #known = new Set<string>();
  #refreshing: Promise<void> | null = null;
  #problem: string | null = null;
  readonly #left = new AbortController();

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  get entries(): Entry[] {
    const own = new Set(this.#sent.map(({ turnId }) => turnId));
    const stored = this.#answer.messages
      .filter(({ turnId }) => !own.has(turnId))
      .map(({ id, from, text, files, at }): Entry => ({ id, from, text, files, atMs: Date.parse(at) || null, state: 'still' }));
    return [...stored, ...this.#sent.flatMap(listEntries)];
  }

  get troubles(): Trouble[] {
    return this.#sent.flatMap(({ key, trouble }) => (trouble === null ? [] : [{ key, code: trouble }]));
  }

  /** The code of why the messages so far could not be loaded; null when they could. */
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
   * The messages from others after this one. A message that the service no longer sends is older than all that it
   * sends.
   */
  messagesAfter(messageId: string): WidgetMessage[] {
    const at = this.#answer.messages.findIndex(({ id }) => id === messageId);
    return this.#answer.messages.slice(at + 1).filter(({ from }) => from !== 'visitor');
  }

  get askAgainMs(): number {
    return this.#answer.askAgainSeconds * 1000;
  }

  get isAnswering(): boolean {
    return this.#sent.some(({ state }) => state === 'open');
  }

  get maySend(): boolean {
    return this.#sent.filter(({ state }) => state === 'open').length < OPEN_AT_MOST;
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

  send(text: string, files: readonly KeptFile[]): void {
    this.#run({ key: randomKey(), text, files, turnId: null });
  }

  /**
   * Retries: a message that the service never accepted is sent again as the same one; one that failed there is sent as
   * a new one.
   */
  retry(key: string): void {
    const failed = this.#sent.find((message) => message.key === key);
    if (failed?.state !== 'failed') return;
    this.#sent = this.#sent.filter((message) => message !== failed);
    this.#run({ key: failed.turnId === null ? key : randomKey(), text: failed.text, files: failed.files, turnId: null });
  }

  /** Asks the service to stop answering. */
  stop(): void {
    const { gateway, who } = this.#options;
    for (const { state, turnId } of this.#sent) {
      if (state === 'open' && turnId !== null) void gateway.cancel(who(), turnId).catch(() => undefined);
    }
  }

  /** Asks for new messages. Never rejects. */
  async refresh(): Promise<void> {
    this.#refreshing ??= this.#ask().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /** Ends the conversation: nothing of it is shown or kept any more. Answers go on at the service. */
  leave(): void {
    this.#left.abort();
  }

  async #ask(): Promise<void> {
    const { gateway, who, onChange } = this.#options;
    try {
      const answer = await gateway.conversation(who(), this.#tag);
      if (answer !== null) ({ tag: this.#tag, conversation: this.#answer } = answer);
      this.#problem = null;
    } catch (error) {
      this.#problem = ConciergeError.from(error).code;
    }
    const stored = new Set(this.#answer.messages.map(({ turnId }) => turnId));
    this.#sent = this.#sent.filter(({ state, turnId }) => state !== 'done' || turnId === null || !stored.has(turnId));
    if (!this.#left.signal.aborted) onChange();
  }

  #run(message: KeptMessage): void {
    const sent: SentMessage = { ...message, reply: new ReplyText(), atMs: Date.now(), state: 'open', trouble: null };
    this.#sent.push(sent);
    this.#known.add(message.key);
    this.#changed();
    void this.#readAnswer(sent).then(async () => {
      // An answer that was being fetched when this one ended may be older than it.
      await this.#refreshing;
      await this.refresh();
    });
  }

  /** Resolves when the answer is there, has failed, or was left. Never rejects. */
  async #readAnswer(sent: SentMessage): Promise<void> {
    const { gateway, who } = this.#options;
    const { signal } = this.#left;
    try {
      for await (const event of streamEvents(gateway.turn(who, sent), sent.turnId, { signal })) this.#take(sent, event);
    } catch (error) {
      if (!signal.aborted) this.#fail(sent, ConciergeError.from(error).code);
    }
  }

  #take(sent: SentMessage, event: VisitorEvent): void {
    sent.reply.add(event);
    if (event.type === 'error') return this.#fail(sent, event.data.code);
    if (event.type === 'session') sent.turnId = event.data.turnId;
    if (event.type === 'done') sent.state = 'done';
    this.#changed();
  }

  #fail(sent: SentMessage, code: string): void {
    sent.state = 'failed';
    sent.trouble = code;
    this.#changed();
  }

  #changed(): void {
    if (this.#left.signal.aborted) return;
    const { memory, who, onChange } = this.#options;
    const others = memory.kept(who()).filter(({ key }) => !this.#known.has(key));
    memory.keep(who(), [...others, ...this.#sent.filter(({ state }) => state === 'open')]);
    onChange();
  }
}

function listEntries({ key, text, files, reply, state, atMs }: SentMessage): Entry[] {
  const question: Entry = { id: `${key}.said`, from: 'visitor', text, files: files.map(({ name }) => name), atMs, state: 'still' };
  const isOpen = state === 'open';
  if (reply.text === '' && !isOpen) return [question];
  const shown = !isOpen ? 'still' : reply.text === '' ? 'typing' : 'growing';
  return [question, { id: `${key}.reply`, from: 'agent', text: reply.text, files: [], atMs: null, state: shown }];
}
