import { setTimeout } from 'node:timers/promises';
import type { ChannelSender, TypingRequest } from './channel-sender.ts';

/** Providers take the indicator away by themselves; no turn lasts longer than this. */
const TYPING_MAX_MS = 30 * 60_000;

/** Shows the typing indicator until the signal aborts. Never throws, and ends by itself where it cannot be shown. */
export async function keepTyping(
  sender: Pick<ChannelSender, 'showTyping' | 'typingRepeatMs'>,
  request: TypingRequest,
  signal: AbortSignal,
): Promise<void> {
  const rounds = Math.ceil(TYPING_MAX_MS / sender.typingRepeatMs);
  for (let round = 1; round <= rounds && !signal.aborted; round += 1) {
    if (!(await sender.showTyping(request, signal))) return;
    await setTimeout(sender.typingRepeatMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
