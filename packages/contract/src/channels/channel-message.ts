import { z } from 'zod';

/** Where a conversation is on a channel, in the provider's own ids: the address of an answer. */
export const ChannelAddress = z.object({
  to: z.string().min(1).max(256),
  /** A topic of a Telegram group, a thread of Slack. */
  thread: z.string().max(256).nullable(),
  /**
   * Which of the binding's accounts was written to, where it has several: Messenger's page, or the Instagram account
   * beside it.
   */
  account: z.string().min(1).max(256).optional(),
});
export type ChannelAddress = z.infer<typeof ChannelAddress>;

export const mediaKinds = ['image', 'video', 'audio', 'voice', 'document', 'sticker', 'animation', 'share', 'unknown'] as const;

/** A file that the provider keeps, as its message named it: fetched once the message is accepted. */
export const ChannelMedia = z.object({
  kind: z.enum(mediaKinds),
  id: z.string().nullable(),
  url: z.string().nullable(),
  mediaType: z.string().nullable(),
  /** As the sender wrote it: never a path. */
  fileName: z.string().nullable(),
  bytes: z.number().nullable(),
  sha256: z.string().nullable(),
});
export type ChannelMedia = z.infer<typeof ChannelMedia>;

/**
 * What came with the text of a message from a channel. On disk with its turn, so that the worker that runs it can
 * fetch, answer and refer to it.
 */
export const ChannelMessage = z.object({
  address: ChannelAddress,
  /** Others read along: an answer to one of them goes to all. */
  isGroup: z.boolean(),
  /** What a reply or a read mark names. */
  messageRef: z.string().min(1),
  media: z.array(ChannelMedia),
  location: z
    .object({ latitude: z.number(), longitude: z.number(), name: z.string().nullable(), address: z.string().nullable() })
    .optional(),
  /** Names on contact cards. */
  cards: z.array(z.string()).optional(),
  /** A button or a menu entry was chosen; its label is the text. */
  choice: z.object({ kind: z.string(), id: z.string(), title: z.string().nullable() }).optional(),
  order: z
    .object({ catalogId: z.string().nullable(), items: z.array(z.object({ productId: z.string(), quantity: z.number().nullable() })) })
    .optional(),
  /** Sent together with others of the same id: the provider makes several messages of one. */
  albumId: z.string().min(1).max(256).optional(),
  /** The message it answers, by the provider's id. */
  replyTo: z.string().nullable(),
});
export type ChannelMessage = z.infer<typeof ChannelMessage>;
