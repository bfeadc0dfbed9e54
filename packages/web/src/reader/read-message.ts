import { z } from 'zod';

/** What a reading thread is given. */
export const ReadTask = z.object({
  bytes: z.instanceof(Uint8Array),
  contentType: z.string(),
  /** What relative links are relative to. */
  url: z.string(),
  maxCharacters: z.int(),
});
export type ReadTask = Omit<z.infer<typeof ReadTask>, 'bytes'> & { readonly bytes: Uint8Array };

/** What it says: a text, maybe followed by a better one; or why there can be none. The last word counts. */
export const ReadMessage = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('text'), title: z.string(), text: z.string(), isPlain: z.boolean(), isCut: z.boolean() }),
  z.object({ kind: z.literal('refused'), reason: z.string() }),
]);
export type ReadMessage = z.infer<typeof ReadMessage>;
