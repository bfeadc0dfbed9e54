import { z } from 'zod';

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const ToolCall = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });
const Message = z.object({
  role: z.string(),
  content: z.union([z.string(), z.array(Part)]).nullish(),
  tool_calls: z.array(ToolCall).optional(),
  tool_call_id: z.string().optional(),
});
export type CompletionMessage = z.infer<typeof Message>;

/** What the servers of this package read of a chat completion request; the rest is accepted and ignored. */
export const CompletionRequest = z.object({
  model: z.string(),
  messages: z.array(Message),
  tools: z.array(z.object({ function: z.object({ name: z.string() }) })).optional(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
});
export type CompletionRequest = z.infer<typeof CompletionRequest>;

/** The words of a message; images and the like are passed over. */
export function textOfMessage({ content }: CompletionMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}

/**
 * Where the user spoke last. A message that only shows what a tool has shown is sent in the user's name and is not the
 * user's.
 */
export function lastAsked(messages: readonly CompletionMessage[]): number {
  return messages.findLastIndex((message) => message.role === 'user' && !textOfMessage(message).startsWith('[Shown by '));
}
