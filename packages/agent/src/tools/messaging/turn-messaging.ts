import type { ReplyWindow } from '@concierge/channel';
import {
  toAppName,
  appNamesWithTemplates,
  channelDefinitions,
  channelSynonyms,
  isMessagingChannel,
  readRecipient,
  type AcceptedTurn,
  type Actor,
  type MessagingChannel,
  type AppName,
  type ChannelView,
  type ContactView,
  type HandoffView,
  type HandoffWish,
  type MessageTemplate,
  type OutboundMessage,
} from '@concierge/contract';
import { lastInboundMs, deriveSessionId, type ContactsPage, type NewOutbound, type TenantScope } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import { ToolError } from '../tool-error.ts';

/** The agent whose conversations are the contacts' own. */
const contactsAgent = 'cs';

export interface KeptMessage {
  readonly message: OutboundMessage;
  /** False when this very call has kept it before. */
  readonly isNew: boolean;
  /** A staff member has the conversation it belongs to. */
  readonly isPaused: boolean;
  /** Until when free text may be sent there. */
  readonly window: ReplyWindow;
}

interface WishedMessage {
  readonly app: AppName;
  readonly to: string;
  readonly text: string;
  readonly template?: MessageTemplate | undefined;
}

/**
 * Requests a staff member for a conversation in the name of the turn's agent, and notifies those whom the settings
 * name.
 */
export type RequestStaff = (
  asked: HandoffWish & { readonly sessionId: string },
) => Promise<{ readonly view: HandoffView; readonly isNew: boolean }>;

/**
 * Until when free text may be sent on a channel to a contact whose last message came at this time; undefined: never.
 */
export type FindReplyWindow = (channel: MessagingChannel, to: string, lastInboundMs: number | undefined) => ReplyWindow;

export interface MessagingSource {
  readonly scope: Pick<TenantScope, 'channels' | 'contacts' | 'handoffs' | 'outbox' | 'sessions'>;
  readonly turn: Pick<AcceptedTurn, 'acceptedAtMs' | 'agent' | 'channel' | 'channelMessage' | 'sender' | 'sessionId' | 'turnId'>;
  readonly access: ToolAccess;
  readonly requestStaff: RequestStaff;
  readonly findReplyWindow: FindReplyWindow;
}

/** Channels, contacts and handoffs, as far as the turn's agent may reach them: for cs, its own conversation. */
export class TurnMessaging {
  readonly #source: MessagingSource;

  constructor(source: MessagingSource) {
    this.#source = source;
  }

  /** The connected channels. */
  async channels(): Promise<readonly ChannelView[]> {
    this.#assertAdmin();
    return this.#source.scope.channels.list();
  }

  /**
   * Keeps a message, to be sent.
   * @throws ToolError when the channel is not connected, its window is closed, or there is no such recipient
   */
  async send({ app, to, text, template }: WishedMessage, callId: string): Promise<KeptMessage> {
    this.#assertAdmin();
    const channel = channelSynonyms[app];
    await this.#assertConnected(channel);
    const recipient = readRecipient(channel, to);
    if (recipient === undefined)
      throw new ToolError(
        `"${to}" is nobody on ${app}: give ${channelDefinitions[channel].recipient.words}. See contacts for who has written.`,
      );
    if (template !== undefined && !channelDefinitions[channel].hasTemplates)
      throw new ToolError(
        `Templates are for ${appNamesWithTemplates.join(', ')} only: leave template out and call message again for ${app}.`,
      );
    const sender = await this.#source.scope.contacts.findCanonicalSender(channel, recipient);
    const sessionId = deriveSessionId(contactsAgent, channel, sender);
    const heardMs = await lastInboundMs(this.#source.scope.sessions, sessionId);
    const goneSince = await this.#source.scope.contacts.unreachableSince(channel, recipient);
    // A contact who has written since then has unblocked the bot, whatever the channel reported about that.
    if (goneSince !== undefined && (heardMs ?? 0) < Date.parse(goneSince))
      throw new ToolError(
        `${recipient} has blocked the bot or removed it on ${app}: nothing can be sent there until they let it in again.`,
      );
    const window = this.#source.findReplyWindow(channel, recipient, heardMs);
    if (window.state === 'closed' && template === undefined) throw windowClosed(channel, window.sinceMs);
    const kept = { kind: 'message', channel, to: recipient, sessionId, text, ...(template && { template }) } as const;
    return this.#keep(kept, { callId, window });
  }

  /** Keeps a part for the contact of this conversation. @throws ToolError where there is no contact to send it to */
  async reply(text: string, callId: string): Promise<KeptMessage> {
    const { channel, channelMessage, sessionId, acceptedAtMs } = this.#source.turn;
    if (!isMessagingChannel(channel) || channelMessage === undefined) {
      throw new ToolError(
        'This conversation is not on a chat app: what you write is shown as it comes. Say it in your answer instead of calling reply.',
      );
    }
    if (await this.#source.scope.handoffs.isPaused(sessionId))
      throw new ToolError('A person has taken this conversation over: nothing is sent for you until it is resumed.');
    await this.#assertConnected(channel);
    const { to, thread } = channelMessage.address;
    const inboundAt = new Date(acceptedAtMs).toISOString();
    const kept = { kind: 'reply', channel, to, ...(thread !== null && { thread }), sessionId, text, inboundAt } as const;
    return this.#keep(kept, { callId, window: this.#source.findReplyWindow(channel, to, acceptedAtMs) });
  }

  /** The contact of this conversation; undefined when nothing is known, or there is none. */
  async ownContact(): Promise<ContactView | undefined> {
    return this.#source.turn.sender === null ? undefined : this.#source.scope.contacts.find(this.#source.turn.sender);
  }

  /** @throws ToolError for cs, as the next two */
  async listContacts(page: { limit: number; cursor: string | undefined }): Promise<ContactsPage> {
    this.#assertAdmin();
    return this.#source.scope.contacts.list(page);
  }

  async searchContacts(query: string, limit: number): Promise<readonly ContactView[]> {
    this.#assertAdmin();
    return this.#source.scope.contacts.search(query, limit);
  }

  async findContact(sender: string): Promise<ContactView | undefined> {
    this.#assertAdmin();
    return this.#source.scope.contacts.find(sender);
  }

  /**
   * Requests a handoff of this conversation, or of the one that is named.
   * @throws ToolError where cs names another one
   */
  async requestHandoff(
    { reason, hours }: Omit<HandoffWish, 'by'>,
    sessionId: string | undefined,
  ): Promise<{ view: HandoffView; isNew: boolean }> {
    if (this.#source.access === 'admin' && (sessionId === undefined || sessionId === this.#source.turn.sessionId))
      throw new ToolError('This conversation is with the owner, who is a person: give session_id, from sessions_list or contacts.');
    return this.#source.requestStaff({ sessionId: await this.#conversation(sessionId), reason, hours, by: this.#actor() });
  }

  async findHandoff(sessionId: string | undefined): Promise<HandoffView | undefined> {
    return this.#source.scope.handoffs.find(await this.#conversation(sessionId));
  }

  /** @throws ToolError for cs */
  async resumeHandoff(sessionId: string | undefined): Promise<'resumed' | 'not_paused'> {
    if (this.#source.access === 'cs') throw new ToolError('Only a person or the owner’s agent can give the conversation back to you.');
    return this.#source.scope.handoffs.resume(await this.#conversation(sessionId), this.#actor());
  }

  /** @throws ToolError for cs */
  async pausedHandoffs(): Promise<{ handoffs: readonly HandoffView[]; broken: readonly string[] }> {
    this.#assertAdmin();
    return this.#source.scope.handoffs.paused();
  }

  async #keep(
    message: Omit<NewOutbound, 'agent' | 'turnId' | 'callId'>,
    { callId, window }: { readonly callId: string; readonly window: ReplyWindow },
  ): Promise<KeptMessage> {
    const { agent, turnId } = this.#source.turn;
    const kept = await this.#source.scope.outbox.accept({ ...message, agent, turnId, callId });
    return { ...kept, window, isPaused: await this.#source.scope.handoffs.isPaused(message.sessionId) };
  }

  async #assertConnected(channel: ChannelView['channel']): Promise<void> {
    const binding = await this.#source.scope.channels.find(channel);
    const app = toAppName(channel);
    if (binding === undefined) throw new ToolError(`${app} is not connected, so nothing can be sent there. ${howToConnect(app)}`);
    if (binding.state !== 'enabled')
      throw new ToolError(`${app} is connected but ${binding.state}: ${binding.reason ?? 'no reason was given'}. Nothing can be sent.`);
  }

  /** The turn's own conversation; the admin may name another existing one. */
  async #conversation(sessionId: string | undefined): Promise<string> {
    const own = this.#source.turn.sessionId;
    if (sessionId === undefined || sessionId === own) return own;
    if (this.#source.access === 'cs' || (await this.#source.scope.sessions.load(sessionId)) === undefined)
      throw new ToolError(`There is no conversation ${sessionId}.`);
    return sessionId;
  }

  #actor(): Actor {
    return { kind: 'agent', agent: this.#source.turn.agent, turnId: this.#source.turn.turnId };
  }

  #assertAdmin(): void {
    if (this.#source.access !== 'admin') throw new ToolError('This is for the owner’s agent only.');
  }
}

/** The provider would refuse free text: the error comes before the message is kept, with what may be done instead. */
function windowClosed(channel: MessagingChannel, sinceMs: number | undefined): ToolError {
  const { hasTemplates, label } = channelDefinitions[channel];
  const since =
    sinceMs === undefined
      ? 'This contact has not written there, so the window has never been open.'
      : `The window has been closed since ${new Date(sinceMs).toISOString()}.`;
  const instead = hasTemplates
    ? `Give template, with the name and language of one that ${label} has approved for the owner, or wait until they write.`
    : 'Nothing can be sent until they write; tell the owner.';
  return new ToolError(
    `NOT SENT. ${toAppName(channel)} takes free text only within 24 hours after the contact’s last message. ${since} ${instead}`,
  );
}

/** Words for a model that explains it. */
export function howToConnect(app: AppName): string {
  return `The owner connects it with an admin key (PUT /api/channels/${app}), or the operator does (concierge channel connect <tenant> ${app}). Credentials must never be written into a conversation.`;
}
