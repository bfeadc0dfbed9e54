import { z } from 'zod';

export const queueName = 'pipeline';

/** One turn of a baseline pipeline, as its job carries it. */
export const PipelineTurn = z.object({ turnId: z.string(), sessionId: z.string(), text: z.string(), channel: z.string() });
export type PipelineTurn = z.infer<typeof PipelineTurn>;

/** `<turn id> <1 when the turn ends>\n<rendered SSE>` */
export function encode(turnId: string, ends: boolean, sse: string): string {
  return `${turnId} ${ends ? '1' : '0'}\n${sse}`;
}

export function decode(message: string): { readonly turnId: string; readonly ends: boolean; readonly sse: string } {
  const space = message.indexOf(' ');
  const line = message.indexOf('\n');
  return { turnId: message.slice(0, space), ends: message[space + 1] === '1', sse: message.slice(line + 1) };
}
