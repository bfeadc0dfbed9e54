import type { Surface } from './surface.ts';

/** A margin for the way to the provider: a message that would arrive a moment too late is not sent. */
const MARGIN_MS = 30_000;

export type ReplyWindow =
  | { readonly state: 'none' }
  | { readonly state: 'open'; readonly untilMs: number }
  | { readonly state: 'closed'; readonly sinceMs: number | undefined };

/** Whether free text may be sent, known before it is tried. A contact who never wrote has no window at all. */
export function replyWindow(
  { replyWindowMs }: Pick<Surface, 'replyWindowMs'>,
  { lastInboundMs, nowMs }: { readonly lastInboundMs: number | undefined; readonly nowMs: number },
): ReplyWindow {
  if (replyWindowMs === null) return { state: 'none' };
  if (lastInboundMs === undefined) return { state: 'closed', sinceMs: undefined };
  const untilMs = lastInboundMs + replyWindowMs - MARGIN_MS;
  return nowMs < untilMs ? { state: 'open', untilMs } : { state: 'closed', sinceMs: untilMs };
}
