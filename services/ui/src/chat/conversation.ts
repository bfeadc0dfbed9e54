import { ConciergeError, type RetryOptions } from '@concierge/client';
import type { ChannelName, SessionPage, TurnEvent, UploadRef } from '@concierge/contract';
import { applyEvent, findWholeQuestion, hasEnded, isUnderWay, newTurn, type ChatTurn, type TurnFailure } from './chat-turn.ts';
import { changeTurn, compareTurns, takenBack, withStored, type ConversationState, toStoredTurns } from './conversation-state.ts';
import type { GatewayClient } from './gateway-client.ts';
import { KeptMessages } from './kept-messages.ts';
import { QueuedMessages } from './queued-messages.ts';
import { loadConversation, loadNew, TURNS_SHOWN } from './load-conversation.ts';
import type { SavedTurnStore } from './saved-turns.ts';

/** Attempts in a row without a single new event before the user of the page is asked. */
const MAX_RETRIES = 40;

/** The contact that the user plays towards cs. */
export interface Contact {
  /** Null: an anonymous visitor. */
  readonly sender: string | null;
  readonly channel: ChannelName;
}

export interface ConversationTarget extends Contact {
  readonly agent: string;
  readonly contactId: string | null;
}

export interface ConversationOptions {
  readonly target: ConversationTarget;
  readonly gateway: GatewayClient;
  readonly saved: SavedTurnStore;
  /** Takes up messages that a reload left in a conversation without an id. */
  readonly restore: boolean;
  /**
   * Keeps ended turns over a reload too, for a key that may not read stored sessions: their streams can be replayed for
   * a while.
   */
  readonly keepEnded: boolean;
  readonly wait: NonNullable<RetryOptions['wait']>;
  /** A message that is the same one whenever it is sent again; 1 to 255 visible ASCII characters. */
  readonly newKey: () => string;
  readonly now: () => Date;
  /** The service has named the conversation. */
  readonly onContact?: (contactId: string) => void;
  readonly onTurnEnded?: (turn: ChatTurn) => void;
}

export interface Message {
  readonly text: string;
  readonly attachments: readonly UploadRef[];
}

/**
 * One conversation: its turns, what is being sent and what is being followed. Messages are handed in one after another,
 * so that the order of typing is the order of acceptance; of those that wait only the first is followed, so that many
 * of them do not use up the browser's connections.
 */
export class Conversation {
  readonly #options: ConversationOptions;
  readonly #listeners = new Set<() => void>();
  readonly #followed = new Map<string, AbortController>();
  readonly #kept: KeptMessages;
  /** Messages that wait. */
  readonly queue: QueuedMessages;
  #state: ConversationState;
  #opening: Promise<void> | undefined;
  /** Of the requests whose answer has the name: how many were made, and the last of those whose answer was taken. */
  #names = { asked: 0, taken: 0 };
  #closed = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#kept = new KeptMessages(options);
    this.queue = new QueuedMessages({
      gateway: options.gateway,
      read: () => this.#state.turns,
      show: (turns) => this.#show(turns),
      forget: (turns) => this.#forget(turns),
      send: (message) => this.send(message),
      stop: async (key) => this.stop(key),
    });
    this.#state = {
      ...options.target,
      isCustomers: false,
      title: null,
      load: { at: 'loading' },
      forkedFrom: null,
      earlier: null,
      turns: [],
    };
  }

  readonly snapshot = (): ConversationState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /**
   * Loads what is stored and takes up what is under way, once however often it is asked for: a second answer would take
   * away what is written after the first. Never rejects: the state contains the failure.
   */
  async open(): Promise<void> {
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    this.#set({ ...this.#state, load: { at: 'loading' } });
    try {
      await this.#load();
    } catch (error) {
      this.#set({ ...this.#state, load: { at: 'failed', failure: ConciergeError.from(error) } });
      return;
    }
    this.#advance();
  }

  send({ text, attachments }: Message): void {
    const { agent, sender, channel, isCustomers } = this.#state;
    if (isCustomers) return;
    const key = this.#options.newKey();
    const contact = agent === 'cs' ? { channel, ...(sender === null ? {} : { sender }) } : {};
    this.#kept.set(key, {
      message: text,
      ...contact,
      ...(attachments.length === 0 ? {} : { attachments: attachments.map(({ id }) => id) }),
    });
    const question = { text, attachments, at: this.#options.now().toISOString() };
    this.#set({ ...this.#state, turns: [...this.#state.turns, newTurn({ key, question })] });
    this.#advance();
  }

  /** Asks in another conversation, which is not shown. */
  askIn(contactId: string, message: Message): void {
    const target = { ...this.#options.target, agent: this.#state.agent, contactId };
    const other = new Conversation({ ...this.#options, target, restore: false });
    other.send(message);
    // What is being handed in is handed in all the same.
    other.close();
  }

  /**
   * Sends a message of the page's user in the agent's place. Rejects with a ConciergeError when it was not accepted.
   */
  async answerAsPerson(text: string, idempotencyKey: string): Promise<void> {
    const { contactId } = this.#state;
    if (contactId === null) return;
    const turnId = await this.#options.gateway.answerAsPerson(contactId, { message: text, idempotencyKey });
    if (this.#state.turns.some((turn) => turn.turnId === turnId)) return;
    const turn = newTurn({ key: turnId, turnId, isFromStaff: true, state: { at: 'waiting' } });
    this.#set({ ...this.#state, turns: [...this.#state.turns, turn] });
    this.#advance();
  }

  /** Shows what has been stored in the meantime. */
  async refresh(): Promise<void> {
    // What is on its way may be from before.
    await this.#opening;
    if (this.#state.load.at === 'ready') await this.#loadStored();
  }

  /** Shows the name that the conversation has by now. */
  async readName(): Promise<void> {
    await this.#opening;
    if (this.#state.load.at === 'ready') await this.#findStored(1);
  }

  /** Shows the page of turns before those that are shown. */
  async showEarlier(): Promise<void> {
    const { contactId, earlier } = this.#state;
    if (contactId === null || earlier === null) return;
    const page = await this.#options.gateway.findSession(contactId, { limit: TURNS_SHOWN, before: earlier });
    if (this.#state.earlier !== earlier) return;
    const shown = new Set(this.#state.turns.map(({ turnId }) => turnId));
    const before = toStoredTurns(page).filter(({ turnId }) => !shown.has(turnId));
    this.#set({ ...this.#state, earlier: page.before, turns: [...before, ...this.#state.turns] });
  }

  /** Shows what was asked, or taken back, elsewhere, and follows it. */
  async catchUp(): Promise<void> {
    const { contactId, load } = this.#state;
    if (contactId === null || load.at !== 'ready') return;
    const views = await this.#options.gateway.listTurns(contactId, TURNS_SHOWN);
    // One of them may be a message of this page whose answer has not come yet; its next change brings all of them.
    if (this.#closed || this.#state.turns.some(({ state }) => state.at === 'sending')) return;
    const { cancelled, missing, isStoredMissing } = compareTurns(this.#state.turns, views);
    for (const key of cancelled) this.#change(key, takenBack);
    if (isStoredMissing) await this.#loadStored();
    const shown = new Set(this.#state.turns.map(({ turnId }) => turnId));
    this.#show([...this.#state.turns, ...missing.filter(({ turnId }) => !shown.has(turnId) && !this.queue.wasTakenBack(turnId))]);
  }

  /** Asks the service to end a turn; its text stays. */
  async stop(key: string): Promise<void> {
    const turn = this.#turn(key);
    // It may have ended while it was being pressed: it would be said to be stopping for ever.
    if (turn === undefined || turn.turnId === null || hasEnded(turn)) return;
    this.#change(key, (running) => ({ ...running, stopping: true }));
    try {
      await this.#options.gateway.cancelTurn(turn.turnId);
    } catch {
      this.#change(key, (running) => ({ ...running, stopping: false }));
    }
  }

  /**
   * A message that was never accepted is handed in once more, as the same one; a failed turn is asked again, as a new
   * one, where all of its message is known. Only the last one: what comes after it may be its second time.
   */
  retry(key: string): void {
    const turn = this.#turn(key);
    const question = turn === undefined ? null : findWholeQuestion(turn);
    if (turn?.state.at === 'unsent') this.#sendAgain(turn);
    else if (turn?.state.at === 'failed' && turn === this.#state.turns.at(-1) && question !== null) this.send(question);
    this.#advance();
  }

  /** It will be accepted after everything that has been accepted in the meantime, so that is where it stands. */
  #sendAgain(turn: ChatTurn): void {
    const others = this.#state.turns.filter(({ key }) => key !== turn.key);
    this.#set({ ...this.#state, turns: [...others, { ...turn, state: { at: 'sending' }, link: 'live' }] });
  }

  /** Goes on with turns whose connection was given up. */
  reconnect(): void {
    for (const { key, link } of this.#state.turns) if (link === 'lost') this.#change(key, (turn) => ({ ...turn, link: 'live' }));
    this.#advance();
  }

  /** Changes the contact that the user plays; only before the first message. */
  playContact(change: Partial<Contact>): void {
    if (this.#state.contactId === null && this.#state.turns.length === 0) this.#set({ ...this.#state, ...change });
  }

  /** It is not shown any more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Stops following. Turns go on at the service, and what is being handed in is still handed in. */
  close(): void {
    this.#closed = true;
    this.#kept.close();
    this.#listeners.clear();
    for (const [key, leave] of this.#followed) if (this.#turn(key)?.state.at !== 'sending') leave.abort();
  }

  async #load(): Promise<void> {
    const { saved, restore } = this.#options;
    const { contactId } = this.#state;
    if (contactId === null && !restore) saved.save(this.#name, []);
    const kept = this.#kept.load(this.#name);
    // After a reload the conversation goes on with the contact that its messages name.
    this.#set({ ...this.#state, sender: kept[0]?.body.sender ?? this.#state.sender });
    const loaded = contactId === null ? loadNew(kept) : await loadConversation(this.#options, contactId, kept);
    this.#set({ ...this.#state, ...loaded, load: { at: 'ready' } });
  }

  #forget(turns: readonly ChatTurn[]): void {
    for (const { key } of turns) this.#kept.delete(key);
    this.#set({ ...this.#state, turns: this.#state.turns.filter((turn) => !turns.some(({ key }) => key === turn.key)) });
    this.#save();
  }

  #show(turns: readonly ChatTurn[]): void {
    this.#set({ ...this.#state, turns });
    this.#advance();
  }

  /** Starts what can be started: the first message to hand in, or the first turn to follow. */
  #advance(): void {
    const sending = this.#state.turns.find((turn) => turn.state.at === 'sending');
    if (sending !== undefined && !this.#followed.has(sending.key)) void this.#follow(sending.key);
    if (this.#closed) return;
    const first = this.#state.turns.find(isUnderWay);
    if (first !== undefined && first.link !== 'lost' && !this.#followed.has(first.key)) void this.#follow(first.key);
  }

  async #follow(key: string): Promise<void> {
    const leave = new AbortController();
    this.#followed.set(key, leave);
    // Without the id of a last event the stream begins at the turn's start.
    this.#change(key, (turn) => ({ ...turn, parts: [], settled: 0 }));
    const outcome = await this.#readToEnd(key, leave.signal);
    this.#followed.delete(key);
    if (outcome !== 'left') {
      await (outcome === 'ended' ? this.#conclude(key) : this.#giveUp(key, outcome));
      this.#save();
    }
    this.#advance();
  }

  /**
   * `left`: the signal was aborted. An error: the service refuses the stream, or could not be reached again and again.
   */
  async #readToEnd(key: string, signal: AbortSignal): Promise<'ended' | 'left' | ConciergeError> {
    try {
      for await (const event of this.#openStream(key, signal)) this.#take(key, event);
      return 'ended';
    } catch (error) {
      return signal.aborted ? 'left' : ConciergeError.from(error);
    }
  }

  /** Follows the turn, or hands its message in first. */
  #openStream(key: string, signal: AbortSignal): AsyncIterable<TurnEvent> {
    const { gateway, wait } = this.#options;
    const onRetry = (): void => this.#change(key, (turn) => ({ ...turn, link: 'reconnecting' }));
    const options = { signal, wait, maxRetries: MAX_RETRIES, onRetry };
    const turnId = this.#turn(key)?.turnId ?? null;
    if (turnId !== null) return gateway.followTurn(turnId, options);
    const { agent, contactId } = this.#state;
    // Fixed by the first attempt: the same key must come with the same body.
    const body = { message: '', ...(contactId !== null && { contact_id: contactId }), ...this.#kept.get(key) };
    this.#kept.set(key, body);
    this.#save();
    return gateway.streamTurn(agent, body, { ...options, idempotencyKey: key });
  }

  #take(key: string, event: TurnEvent): void {
    this.#change(key, (turn) => ({ ...applyEvent(turn, event), link: 'live' }));
    if (event.type !== 'session') return;
    this.#named(event.data.contact_id);
    this.#save();
    const first = this.#state.turns.find((turn) => !hasEnded(turn));
    if (this.#closed || first?.key !== key) this.#followed.get(key)?.abort();
    this.#advance();
  }

  #named(contactId: string): void {
    if (this.#state.contactId === contactId) return;
    this.#kept.saveForReload(this.#name, this.#state.turns);
    if (this.#state.agent !== 'admin') this.#options.saved.markPlayed(contactId);
    this.#set({ ...this.#state, contactId });
    if (this.#closed) return;
    this.#options.onContact?.(contactId);
    // The contact that is played may have talked before.
    if (this.#state.sender !== null) void this.#loadStored();
  }

  /** Shows what the session file has. A session that is not stored yet is none. */
  async #loadStored(): Promise<void> {
    const session = await this.#findStored(TURNS_SHOWN);
    if (session === null) return;
    const stored = toStoredTurns(session).filter(({ turnId }) => !this.queue.wasTakenBack(turnId));
    this.#set({ ...this.#state, turns: withStored(this.#state.turns, stored) });
  }

  /** What is stored, whose name is shown. */
  async #findStored(limit: number): Promise<SessionPage | null> {
    const { contactId } = this.#state;
    if (contactId === null) return null;
    const asked = (this.#names.asked += 1);
    const session = await this.#options.gateway.findSession(contactId, { limit }).catch(() => null);
    // The answer to a later request, with a newer name, may have come before this one.
    if (session === null || asked < this.#names.taken) return session;
    this.#names.taken = asked;
    this.#set({ ...this.#state, title: session.title });
    return session;
  }

  async #conclude(key: string): Promise<void> {
    this.#kept.end(key);
    const turn = this.#turn(key);
    if (turn !== undefined && findWholeQuestion(turn) === null) await this.#loadStored();
    if (turn !== undefined && !this.#closed) this.#options.onTurnEnded?.(turn);
  }

  /**
   * The link's end: not accepted; out of reach for so long that the page asks; or ended so long ago that only the
   * session has it.
   */
  async #giveUp(key: string, failure: ConciergeError): Promise<void> {
    const turn = this.#turn(key);
    if (turn === undefined) return;
    if (turn.turnId === null) {
      this.#change(key, unsent(failure));
      return;
    }
    if (failure.isTransient || failure.status === 429) {
      this.#change(key, (unreachable) => ({ ...unreachable, link: 'lost' }));
      return;
    }
    this.#kept.delete(key);
    const { code, retryable } = failure;
    const message = failure.status === 404 ? 'What became of this message is not known any more.' : failure.message;
    this.#change(key, (lost) => ({ ...lost, state: { at: 'failed', failure: { code, message, retryable } } }));
    await this.#loadStored();
  }

  get #name(): string {
    return this.#state.contactId ?? `new.${this.#options.target.agent}`;
  }

  #turn(key: string): ChatTurn | undefined {
    return this.#state.turns.find((turn) => turn.key === key);
  }

  #change(key: string, change: (turn: ChatTurn) => ChatTurn): void {
    this.#set(changeTurn(this.#state, key, change));
  }

  #set(state: ConversationState): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }

  #save(): void {
    this.#kept.save(this.#name, this.#state.turns);
  }
}

function unsent(failure: TurnFailure): (turn: ChatTurn) => ChatTurn {
  return (turn) => ({ ...turn, state: { at: 'unsent', failure }, link: 'live' });
}
