import { z } from 'zod';

const ToolCallDelta = z.object({
  index: z.number().nullish(),
  id: z.string().nullish(),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});
export type ToolCallDelta = z.infer<typeof ToolCallDelta>;

/** Mistral's reasoning models send `content` in typed parts; the ones without `text` are thoughts. */
const ContentParts = z.array(z.object({ text: z.string().optional().catch(undefined) }));

const Choice = z.object({
  index: z.number().nullish(),
  delta: z
    .object({
      content: z.union([z.string(), ContentParts]).nullish(),
      refusal: z.string().nullish(),
      tool_calls: z.array(ToolCallDelta).nullish(),
    })
    .nullish(),
  finish_reason: z.string().nullish(),
});

const Usage = z.object({
  prompt_tokens: z.number().nonnegative(),
  completion_tokens: z.number().nonnegative(),
  prompt_tokens_details: z.object({ cached_tokens: z.number().nonnegative().nullish() }).nullish(),
  /** DeepSeek's name for cached tokens. */
  prompt_cache_hit_tokens: z.number().nonnegative().nullish(),
});
export type ChunkUsage = z.infer<typeof Usage>;

/** One `data:` of a streamed chat completion: what we read of it, as lenient as the many compatible servers need it. */
export const Chunk = z.object({
  choices: z.array(Choice).nullish(),
  usage: Usage.nullish().catch(null),
  error: z.unknown().optional(),
});
export type Chunk = z.infer<typeof Chunk>;

export function textOfContent(content: string | z.infer<typeof ContentParts> | null | undefined): string {
  if (typeof content === 'string') return content;
  return content?.map((part) => part.text ?? '').join('') ?? '';
}
