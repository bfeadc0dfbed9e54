import { channelAdapters, replyWindow, type ReplyWindow } from '@concierge/channel';
import {
  appNameOf,
  appNamesWithTemplates,
  channelDefinitions,
  channelSynonyms,
  isAppChannel,
  recipientOf,
  type AcceptedTurn,
  type Actor,
  type AppChannel,
  type ChannelView,
  type ContactView,
  type HandoffView,
} from '@concierge/contract';
import { lastInboundMs, sessionIdOf, type ContactsPage, type NewOutbound, type TenantScope } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import { ToolError } from '../tool.ts';
import { howToConnect } from './how-to-connect.ts';
import type { AskPerson, HandoffWish, KeptMessage, MessagingView, WishedMessage } from './messaging-view.ts';
import { windowClosed } from './window-closed.ts';

/** The agent whose conversations are the contacts' own. */
const contactsAgent = 'cs';

export interface MessagingSource {
  readonly scope: Pick<TenantScope, 'channels' | 'contacts' | 'handoffs' | 'outbox' | 'sessions'>;
  readonly turn: Pick<AcceptedTurn, 'acceptedAtMs' | 'agent' | 'channel' | 'chatApp' | 'sender' | 'sessionId' | 'turnId'>;
  readonly access: ToolAccess;
  readonly askPerson: AskPerson;
}

/** Messaging as one turn may use it. */
export class TurnMessaging implements MessagingView {
  readonly #scope: MessagingSource['scope'];
  readonly #turn: MessagingSource['turn'];
  readonly #access: ToolAccess;
  readonly #askPerson: AskPerson;

  constructor({ scope, turn, access, askPerson }: MessagingSource) {
    this.#scope = scope;
    this.#turn = turn;
    this.#access = access;
    this.#askPerson = askPerson;
  }

  async channels(): Promise<readonly ChannelView[]> {
    this.#assertAdmin();
    return this.#scope.channels.list();
  }

  async send({ app, to, text, template }: WishedMessage, callId: string): Promise<KeptMessage> {
    this.#assertAdmin();
    const channel = channelSynonyms[app];
    await this.#assertConnected(channel);
    const recipient = recipientOf(channel, to);
    if (recipient === undefined)
      throw new ToolError(
        `"${to}" is nobody on ${app}: give ${channelDefinitions[channel].recipient.words}. See contacts for who has written.`,
      );
    if (template !== undefined && !channelDefinitions[channel].hasTemplates)
      throw new ToolError(
        `Templates are for ${appNamesWithTemplates.join(', ')} only: leave template out and call message again for ${app}.`,
      );
    const sender = await this.#scope.contacts.canonicalOf(channel, recipient);
    const sessionId = sessionIdOf(contactsAgent, channel, sender);
    const heardMs = await lastInboundMs(this.#scope.sessions, sessionId);
    const goneSince = await this.#scope.contacts.unreachableSince(channel, recipient);
    // Who has written since then has let the bot in again, whatever the app told of that.
    if (goneSince !== undefined && (heardMs ?? 0) < Date.parse(goneSince))
      throw new ToolError(
        `${recipient} has blocked the bot or removed it on ${app}: nothing can be sent there until they let it in again.`,
      );
    const window = windowOf(channel, recipient, heardMs);
    if (window.state === 'closed' && template === undefined) throw windowClosed(channel, window.sinceMs);
    const kept = { kind: 'message', channel, to: recipient, sessionId, text, ...(template && { template }) } as const;
    return this.#keep(kept, { callId, window });
  }

  async reply(text: string, callId: string): Promise<KeptMessage> {
    const { channel, chatApp, sessionId, acceptedAtMs } = this.#turn;
    if (!isAppChannel(channel) || chatApp === undefined) {
      throw new ToolError(
        'This conversation is not on a chat app: what you write is shown as it comes. Say it in your answer instead of calling reply.',
      );
    }
    if (await this.#scope.handoffs.isPaused(sessionId))
      throw new ToolError('A person has taken this conversation over: nothing is sent for you until it is resumed.');
    await this.#assertConnected(channel);
    const { to, thread } = chatApp.address;
    const inboundAt = new Date(acceptedAtMs).toISOString();
    const kept = { kind: 'reply', channel, to, ...(thread !== null && { thread }), sessionId, text, inboundAt } as const;
    return this.#keep(kept, { callId, window: windowOf(channel, to, acceptedAtMs) });
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
    if (this.#access === 'admin' && (sessionId === undefined || sessionId === this.#turn.sessionId))
      throw new ToolError('This conversation is with the owner, who is a person: give session_id, from sessions_list or contacts.');
    return this.#askPerson({ sessionId: await this.#conversation(sessionId), reason, hours, by: this.#actor() });
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

  async #keep(
    message: Omit<NewOutbound, 'agent' | 'turnId' | 'callId'>,
    { callId, window }: { readonly callId: string; readonly window: ReplyWindow },
  ): Promise<KeptMessage> {
    const { agent, turnId } = this.#turn;
    const kept = await this.#scope.outbox.accept({ ...message, agent, turnId, callId });
    return { ...kept, window, isPaused: await this.#scope.handoffs.isPaused(message.sessionId) };
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

function windowOf(channel: AppChannel, to: string, heardMs: number | undefined): ReplyWindow {
  return replyWindow(channelAdapters[channel].surface({ to }), { lastInboundMs: heardMs, nowMs: Date.now() });
}
