import { viewReplyWindow } from '@concierge/channel';
import { AppError, isMessagingChannel, routes, type ContactDetails, type ContactListItem, type ContactView } from '@concierge/contract';
import { lastInboundMs, toContactFolder, toNotesOwner, type TenantScope } from '@concierge/tenant';
import { pageLink, type Handlers } from '../http/call.ts';

const noContact = (): AppError => new AppError('not_found', 'There is no such contact.');

/** Who writes to the tenant's agents, and what is known of them. */
export function contactHandlers(): Pick<Handlers, 'listContacts' | 'getContact' | 'getSessionContact'> {
  return {
    listContacts: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await scope.contacts.listKnown(query);
      const names = await scope.contacts.readNames(items.map(({ sender }) => sender));
      const json: ContactListItem[] = items.map(({ sender, ...item }) => {
        return { id: toContactFolder(sender), sender, displayName: names.get(sender) ?? null, ...item };
      });
      const { cursor: _here, ...asked } = query;
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listContacts.path, asked, nextCursor) };
    },
    getContact: async ({ caller: { scope }, params }) => {
      const sender = await scope.contacts.findSender(params.id);
      const found = sender === undefined ? undefined : await scope.contacts.find(sender);
      if (found === undefined) throw noContact();
      return { kind: 'answer', status: 200, json: await showContact(scope, { id: params.id, ...found }) };
    },
    getSessionContact: async ({ caller: { scope }, params }) => ({
      kind: 'answer',
      status: 200,
      json: await showContact(scope, await findSessionContact(scope, params.id)),
    }),
  };
}

type KnownContact = Omit<ContactView, 'sender'> & { readonly id: string; readonly sender: string | null };

/** @throws AppError not_found */
async function findSessionContact(scope: TenantScope, sessionId: string): Promise<KnownContact> {
  const session = await scope.sessions.load(sessionId);
  if (session === undefined || session.agent === 'admin') throw noContact();
  const { id, sender, agent, channel, title, createdAt, updatedAt } = session;
  const key = toContactFolder(toNotesOwner({ sender, sessionId }));
  const known = sender === null ? undefined : await scope.contacts.find(sender);
  const conversations = [{ sessionId: id, agent, channel, title, updatedAt }];
  const alone = { sender, displayName: null, aliases: [], firstSeenAt: createdAt, lastSeenAt: updatedAt, conversations };
  return { id: key, ...(known ?? alone) };
}

async function showContact(scope: TenantScope, { aliases, conversations, ...contact }: KnownContact): Promise<ContactDetails> {
  const notes = (await scope.contactNotes.find(contact.id))?.notes ?? [];
  return {
    ...contact,
    identities: aliases.map(({ channel, alias }) => ({ channel, id: alias })),
    conversations: await Promise.all(
      conversations.map(async (conversation) => ({ ...conversation, ...(await findReach(scope, conversation, contact.sender)) })),
    ),
    notes: notes.map(({ path, size, mtimeMs }) => ({ ref: path, size, updatedAt: new Date(mtimeMs).toISOString() })),
  };
}

type Conversation = ContactView['conversations'][number];

/** Whether something can be sent in this conversation now. */
async function findReach(
  scope: TenantScope,
  { channel, sessionId }: Conversation,
  sender: string | null,
): Promise<Pick<ContactDetails['conversations'][number], 'window' | 'unreachableSince'>> {
  if (!isMessagingChannel(channel)) return { window: { state: 'none', until: null }, unreachableSince: null };
  const [address, heardMs, binding] = await Promise.all([
    scope.sessions.load(sessionId).then((session) => session?.channelAddress),
    lastInboundMs(scope.sessions, sessionId),
    scope.channels.find(channel),
  ]);
  const hint = { ...address, ...(binding !== undefined && { identifiers: binding.identifiers }) };
  const recipient = address?.to ?? sender;
  return {
    window: viewReplyWindow(channel, hint, heardMs),
    unreachableSince: recipient === null ? null : ((await scope.contacts.unreachableSince(channel, recipient)) ?? null),
  };
}
