import type { Surface } from './surface.ts';

const WINDOW_MS = 24 * 60 * 60_000;

/** A message takes its way to the provider: what would arrive a moment too late is not begun. */
const MARGIN_MS = 30_000;

export type ReplyWindow =
  | { readonly state: 'none' }
  | { readonly state: 'open'; readonly untilMs: number }
  | { readonly state: 'closed'; readonly sinceMs: number | undefined };

/**
 * Whether free text may be sent, known before it is tried: Meta's apps allow it for 24 hours after the person last wrote, the others always.
 * Somebody who never wrote has no window at all.
 */
export function replyWindow(
  surface: Surface,
  { lastInboundMs, nowMs }: { readonly lastInboundMs: number | undefined; readonly nowMs: number },
): ReplyWindow {
  if (surface === 'telegram' || surface === 'slack') return { state: 'none' };
  if (lastInboundMs === undefined) return { state: 'closed', sinceMs: undefined };
  const untilMs = lastInboundMs + WINDOW_MS - MARGIN_MS;
  return nowMs < untilMs ? { state: 'open', untilMs } : { state: 'closed', sinceMs: untilMs };
}
