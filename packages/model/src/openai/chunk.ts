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

/**
 * Most chunks by far are one piece of text and nothing else. Those are known at a glance, for a tenth of what the
 * schema costs; for any other the schema decides.
 */
export function plainTextChunk(json: unknown): Chunk | undefined {
  if (!isRecord(json) || json['error'] != null || json['usage'] != null || !Array.isArray(json['choices'])) return undefined;
  const choices: unknown[] = json['choices'];
  const [choice] = choices;
  if (choices.length !== 1 || !isRecord(choice) || choice['finish_reason'] != null) return undefined;
  const content = plainContent(choice['delta']);
  return content === undefined || choice['index'] !== 0 ? undefined : { choices: [{ index: 0, delta: { content } }] };
}

function plainContent(delta: unknown): string | undefined {
  if (!isRecord(delta) || delta['tool_calls'] != null || delta['refusal'] != null) return undefined;
  return typeof delta['content'] === 'string' ? delta['content'] : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textOfContent(content: string | z.infer<typeof ContentParts> | null | undefined): string {
  if (typeof content === 'string') return content;
  return content?.map((part) => part.text ?? '').join('') ?? '';
}
