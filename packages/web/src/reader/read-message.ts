import { z } from 'zod';

/** The facts about a document that a reading process gets; the bytes follow them. */
export const ReadFacts = z.object({
  contentType: z.string(),
  /** What relative links are relative to. */
  url: z.string(),
  maxCharacters: z.int(),
});
export type ReadFacts = z.infer<typeof ReadFacts>;
export interface ReadTask extends ReadFacts {
  readonly bytes: Uint8Array;
}

/**
 * A message of the reading process: a text, maybe followed by a better one; or why there can be none. The last message
 * counts.
 */
export const ReadMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), title: z.string(), text: z.string(), isPlain: z.boolean(), isCut: z.boolean() }),
  z.object({ kind: z.literal('refused'), reason: z.string() }),
]);
export type ReadMessage = z.infer<typeof ReadMessage>;
