import { z } from 'zod';
import type { ToolCall } from '@concierge/contract';
import { EventStreamReader } from '../load/event-stream.ts';

export type ModelMessage =
  | { readonly role: 'user' | 'assistant'; readonly content: string; readonly tool_calls?: readonly object[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

const Chunk = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        content: z.string().nullish(),
        tool_calls: z
          .array(
            z.object({
              index: z.int(),
              id: z.string().nullish(),
              function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
            }),
          )
          .nullish(),
      }),
    }),
  ),
});

/** One streamed chat completion. Throws what `fetch` throws. */
export async function askModel(
  url: string,
  messages: readonly ModelMessage[],
  onText: (delta: string) => Promise<void>,
): Promise<{ text: string; toolCalls: ToolCall[] }> {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer test-key' };
  const response = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'scripted', stream: true, messages }),
  });
  let text = '';
  const toolCalls: ToolCall[] = [];
  const deltas: string[] = [];
  const events = new EventStreamReader(({ data }) => {
    if (data === '[DONE]') return;
    for (const { delta } of Chunk.parse(JSON.parse(data)).choices) {
      if (delta.content != null && delta.content !== '') deltas.push(delta.content);
      for (const call of delta.tool_calls ?? []) grow(toolCalls, call);
    }
  });
  for await (const bytes of response.body ?? []) {
    events.feed(bytes);
    for (const delta of deltas.splice(0)) {
      text += delta;
      await onText(delta);
    }
  }
  return { text, toolCalls };
}

function grow(
  calls: ToolCall[],
  piece: {
    index: number;
    id?: string | null | undefined;
    function?: { name?: string | null | undefined; arguments?: string | null | undefined } | null | undefined;
  },
): void {
  const call = calls[piece.index];
  if (call === undefined)
    calls[piece.index] = { id: piece.id ?? '', name: piece.function?.name ?? '', arguments: piece.function?.arguments ?? '' };
  else call.arguments += piece.function?.arguments ?? '';
}
