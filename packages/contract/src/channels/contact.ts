import { z } from 'zod';
import { MessagingChannel, CanonicalChannel } from './channel.ts';
import { ReplyWindowView } from './channel-binding.ts';
import { ContactId } from '../turns/chat.ts';
import { limits } from '../limits.ts';
import { AgentName } from '../tenants/tenant.ts';

const Sender = z.string().min(1).max(limits.senderMaxCharacters);

/** tenants/<id>/contacts/<hash of sender>/contact.json: what no session contains. */
export const ContactRecord = z.strictObject({
  version: z.literal(1),
  sender: Sender,
  /** The name that the channel or the owner's system gives: untrusted text. */
  displayName: z.string().max(limits.contactNameMaxCharacters).nullable(),
  firstSeenAt: z.iso.datetime(),
});
export type ContactRecord = z.infer<typeof ContactRecord>;

/**
 * Another id of the same contact on the same channel: a phone number beside a business-scoped id, a group that has
 * moved. Lies in the folder of the alias, so that who writes under it is found with one read, and again in the folder
 * of the contact it leads to.
 */
export const ContactAlias = z.strictObject({
  version: z.literal(1),
  channel: MessagingChannel,
  alias: Sender,
  sender: Sender,
  since: z.iso.datetime(),
});
export type ContactAlias = z.infer<typeof ContactAlias>;

/**
 * tenants/<id>/contacts/<hash>/unreachable/<channel>.json: there while the provider reports that nothing can be sent
 * there.
 */
export const ContactUnreachable = z.strictObject({
  version: z.literal(1),
  channel: MessagingChannel,
  sender: Sender,
  since: z.iso.datetime(),
});
export type ContactUnreachable = z.infer<typeof ContactUnreachable>;

/**
 * tenants/<id>/contacts/.unindexed/<hash>-<of its writer>.json: there while the index may not have the name that is in
 * the folder of this hash.
 */
export const ContactUnindexed = z.strictObject({
  version: z.literal(1),
  folder: z.string().regex(/^[0-9a-f]{32}$/u),
  since: z.iso.datetime(),
});
export type ContactUnindexed = z.infer<typeof ContactUnindexed>;

export const ContactView = z
  .object({
    sender: z.string(),
    displayName: z.string().nullable(),
    aliases: z.array(z.object({ channel: MessagingChannel, alias: z.string() })),
    firstSeenAt: z.iso.datetime().nullable(),
    lastSeenAt: z.iso.datetime().nullable(),
    conversations: z.array(
      z.object({ sessionId: ContactId, agent: AgentName, channel: CanonicalChannel, title: z.string(), updatedAt: z.iso.datetime() }),
    ),
  })
  .meta({ id: 'Contact' });
export type ContactView = z.infer<typeof ContactView>;

/** A hash of the contact's id: the contact's own spelling never becomes a path. */
export const ContactKey = z.string().regex(/^[0-9a-f]{32}$/u, 'is not the id of a contact');

const keyed = {
  id: ContactKey.meta({ description: 'The id of the contact in this API; the same as in /api/memory/contacts.' }),
  displayName: z.string().nullable().meta({ description: 'What the channel or the owner’s system calls the contact.' }),
};

/** One line of GET /api/contacts. */
export const ContactListItem = z
  .object({
    ...keyed,
    sender: z.string().meta({ description: 'The id under which the contact writes.' }),
    conversations: z.int().nonnegative().meta({ description: 'How many conversations there are with the contact.' }),
    lastSeenAt: z.iso.datetime().meta({ description: 'When the last of them was used.' }),
  })
  .meta({ id: 'ContactListItem' });
export type ContactListItem = z.infer<typeof ContactListItem>;

const ContactConversation = z
  .object({
    sessionId: ContactId.meta({ description: 'The `contact_id` of the conversation.' }),
    agent: AgentName,
    channel: CanonicalChannel,
    title: z.string(),
    updatedAt: z.iso.datetime(),
    window: ReplyWindowView.meta({
      description:
        'Whether free text may be sent there now, by the rules of the channel. none: there is no such rule. closed: `until` is when; null: the contact never wrote there.',
    }),
    unreachableSince: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Since when the provider reports that nothing can be sent there; null while it does not.' }),
  })
  .meta({ id: 'ContactConversation' });

/** GET /api/contacts/{id}: all that is known of one contact. */
export const ContactDetails = z
  .object({
    ...keyed,
    sender: z
      .string()
      .nullable()
      .meta({ description: 'The id under which the contact writes; null for an anonymous one, of whom there is one conversation.' }),
    identities: z
      .array(z.object({ channel: MessagingChannel, id: z.string() }))
      .meta({ description: 'Further ids of the same contact on a channel.' }),
    firstSeenAt: z.iso.datetime().nullable().meta({ description: 'When the contact wrote first; null where that is not known.' }),
    lastSeenAt: z.iso.datetime().nullable().meta({ description: 'When the contact wrote last; null where that is not known.' }),
    conversations: z.array(ContactConversation).meta({ description: 'With any agent on any channel, the last one first.' }),
    notes: z
      .array(z.object({ ref: z.string(), size: z.int().nonnegative(), updatedAt: z.iso.datetime() }))
      .meta({ description: 'What agents keep about the contact; read with GET /api/memory/contacts/{id}/notes/{ref}.' }),
  })
  .meta({ id: 'ContactDetails' });
export type ContactDetails = z.infer<typeof ContactDetails>;
