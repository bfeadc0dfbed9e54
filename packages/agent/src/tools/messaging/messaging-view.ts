import type { ReplyWindow } from '@concierge/channel';
import type { Actor, AppName, ChannelView, ContactView, HandoffView, MessageTemplate, OutboundMessage } from '@concierge/contract';
import type { ContactsPage } from '@concierge/tenant';

export interface KeptMessage {
  readonly message: OutboundMessage;
  /** False when this very call has kept it before. */
  readonly isNew: boolean;
  /** A person has the conversation it belongs to. */
  readonly isPaused: boolean;
  /** Until when free text may be sent there. */
  readonly window: ReplyWindow;
}

export interface WishedMessage {
  readonly app: AppName;
  readonly to: string;
  readonly text: string;
  readonly template?: MessageTemplate | undefined;
}

export interface HandoffWish {
  readonly reason: string;
  readonly hours: number | undefined;
}

/** Asks for a person in a conversation, in the name of the turn's agent, and has those told who are to hear of it. */
export type AskPerson = (
  asked: HandoffWish & { readonly sessionId: string; readonly by: Actor },
) => Promise<{ readonly view: HandoffView; readonly isNew: boolean }>;

/** Chat apps, contacts and handoffs, as far as the turn's agent may reach them: for cs, its own conversation. */
export interface MessagingView {
  /** Those that are connected. */
  channels(): Promise<readonly ChannelView[]>;
  /** Keeps a message for somebody, to be sent. @throws ToolError when the channel is not connected, its window is closed, or nobody can be called that */
  send(message: WishedMessage, callId: string): Promise<KeptMessage>;
  /** Keeps a part for whoever this conversation is with. @throws ToolError where there is nobody to send it to */
  reply(text: string, callId: string): Promise<KeptMessage>;
  /** The contact of this conversation; undefined when nothing is known, or there is none. */
  ownContact(): Promise<ContactView | undefined>;
  /** @throws ToolError for cs, as the next two */
  listContacts(page: { readonly limit: number; readonly cursor: string | undefined }): Promise<ContactsPage>;
  searchContacts(query: string, limit: number): Promise<readonly ContactView[]>;
  findContact(sender: string): Promise<ContactView | undefined>;
  /** Of this conversation, or of the one that is named. @throws ToolError where cs names another one */
  requestHandoff(wish: HandoffWish, sessionId: string | undefined): Promise<{ readonly view: HandoffView; readonly isNew: boolean }>;
  findHandoff(sessionId: string | undefined): Promise<HandoffView | undefined>;
  /** @throws ToolError for cs */
  resumeHandoff(sessionId: string | undefined): Promise<'resumed' | 'not_paused'>;
  /** @throws ToolError for cs */
  pausedHandoffs(): Promise<{ readonly handoffs: readonly HandoffView[]; readonly broken: readonly string[] }>;
}
