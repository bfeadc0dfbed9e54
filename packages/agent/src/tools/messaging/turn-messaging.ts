import {
  appNameOf,
  channelSynonyms,
  isAppChannel,
  recipientOf,
  recipientWords,
  type AcceptedTurn,
  type Actor,
  type AppName,
  type ChannelView,
  type ContactView,
  type HandoffView,
  type OutboundMessage,
} from '@concierge/contract';
import { sessionIdOf, type ContactsPage, type TenantScope } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import { ToolError } from '../tool.ts';
import { howToConnect } from './how-to-connect.ts';
import type { HandoffWish, KeptMessage, MessagingView } from './messaging-view.ts';

/** The agent whose conversations are the contacts' own. */
const contactsAgent = 'cs';

export interface MessagingSource {
  readonly scope: Pick<TenantScope, 'channels' | 'contacts' | 'handoffs' | 'outbox' | 'sessions'>;
  readonly turn: Pick<AcceptedTurn, 'agent' | 'channel' | 'sender' | 'sessionId' | 'turnId'>;
  readonly access: ToolAccess;
}

/** Messaging as one turn may use it. */
export class TurnMessaging implements MessagingView {
  readonly #scope: MessagingSource['scope'];
  readonly #turn: MessagingSource['turn'];
  readonly #access: ToolAccess;

  constructor({ scope, turn, access }: MessagingSource) {
    this.#scope = scope;
    this.#turn = turn;
    this.#access = access;
  }

  async channels(): Promise<readonly ChannelView[]> {
    this.#assertAdmin();
    return this.#scope.channels.list();
  }

  async send({ app, to, text }: { app: AppName; to: string; text: string }, callId: string): Promise<KeptMessage> {
    this.#assertAdmin();
    const channel = channelSynonyms[app];
    await this.#assertConnected(channel);
    const recipient = recipientOf(channel, to);
    if (recipient === undefined)
      throw new ToolError(`"${to}" is nobody on ${app}: give ${recipientWords[channel]}. See contacts for who has written.`);
    const sender = await this.#scope.contacts.canonicalOf(channel, recipient);
    const sessionId = sessionIdOf(contactsAgent, channel, sender);
    return this.#keep({ kind: 'message', channel, to: recipient, sessionId, text }, callId);
  }

  async reply(text: string, callId: string): Promise<KeptMessage> {
    const { channel, sender, sessionId } = this.#turn;
    if (!isAppChannel(channel) || sender === null) {
      throw new ToolError(
        'This conversation is not on a chat app: what you write is shown as it comes. Say it in your answer instead of calling reply.',
      );
    }
    if (await this.#scope.handoffs.isPaused(sessionId))
      throw new ToolError('A person has taken this conversation over: nothing is sent for you until it is resumed.');
    await this.#assertConnected(channel);
    return this.#keep({ kind: 'reply', channel, to: sender, sessionId, text }, callId);
  }

  async ownContact(): Promise<ContactView | undefined> {
    return this.#turn.sender === null ? undefined : this.#scope.contacts.find(this.#turn.sender);
  }

  async listContacts(page: { limit: number; cursor: string | undefined }): Promise<ContactsPage> {
    this.#assertAdmin();
    return this.#scope.contacts.list(page);
  }

  async searchContacts(query: string, limit: number): Promise<readonly ContactView[]> {
    this.#assertAdmin();
    return this.#scope.contacts.search(query, limit);
  }

  async findContact(sender: string): Promise<ContactView | undefined> {
    this.#assertAdmin();
    return this.#scope.contacts.find(sender);
  }

  async requestHandoff({ reason, hours }: HandoffWish, sessionId: string | undefined): Promise<{ view: HandoffView; isNew: boolean }> {
    const id = await this.#conversation(sessionId);
    return this.#scope.handoffs.request(id, { reason, hours, by: this.#actor() });
  }

  async findHandoff(sessionId: string | undefined): Promise<HandoffView | undefined> {
    return this.#scope.handoffs.find(await this.#conversation(sessionId));
  }

  async resumeHandoff(sessionId: string | undefined): Promise<'resumed' | 'not_paused'> {
    if (this.#access === 'cs') throw new ToolError('Only a person or the owner’s agent can give the conversation back to you.');
    return this.#scope.handoffs.resume(await this.#conversation(sessionId), this.#actor());
  }

  async pausedHandoffs(): Promise<{ handoffs: readonly HandoffView[]; broken: readonly string[] }> {
    this.#assertAdmin();
    return this.#scope.handoffs.paused();
  }

  async #keep(message: Pick<OutboundMessage, 'kind' | 'channel' | 'to' | 'sessionId' | 'text'>, callId: string): Promise<KeptMessage> {
    const { agent, turnId } = this.#turn;
    const kept = await this.#scope.outbox.accept({ ...message, agent, turnId, callId });
    return { ...kept, isPaused: await this.#scope.handoffs.isPaused(message.sessionId) };
  }

  async #assertConnected(channel: ChannelView['channel']): Promise<void> {
    const binding = await this.#scope.channels.find(channel);
    const app = appNameOf(channel);
    if (binding === undefined) throw new ToolError(`${app} is not connected, so nothing can be sent there. ${howToConnect(app)}`);
    if (binding.state !== 'enabled')
      throw new ToolError(`${app} is connected but ${binding.state}: ${binding.reason ?? 'nobody said why'}. Nothing can be sent.`);
  }

  /** Its own; the admin may name another one that exists. */
  async #conversation(sessionId: string | undefined): Promise<string> {
    const own = this.#turn.sessionId;
    if (sessionId === undefined || sessionId === own) return own;
    if (this.#access === 'cs' || (await this.#scope.sessions.load(sessionId)) === undefined)
      throw new ToolError(`There is no conversation ${sessionId}.`);
    return sessionId;
  }

  #actor(): Actor {
    return { kind: 'agent', agent: this.#turn.agent, turnId: this.#turn.turnId };
  }

  #assertAdmin(): void {
    if (this.#access !== 'admin') throw new ToolError('This is for the owner’s agent only.');
  }
}
