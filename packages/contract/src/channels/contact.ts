import { z } from 'zod';
import { MessagingChannel, CanonicalChannel } from './channel.ts';
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
