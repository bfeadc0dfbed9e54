import { z } from 'zod';
import { TurnKind } from '../audit/evidence.ts';

/** What a turn of the load wants the model to do. It travels as JSON inside the user's message. */
export const TurnRequest = z.object({ marker: z.string(), kind: TurnKind, chunks: z.int().positive(), delayMs: z.int().nonnegative() });
export type TurnRequest = z.infer<typeof TurnRequest>;

export function toLoadMessage(request: TurnRequest): string {
  return `chaos ${JSON.stringify(request)}`;
}

/** Reads it back from what the model was sent, dynamic context and all; undefined in any other text. */
export function readRequest(sent: string): TurnRequest | undefined {
  const found = [...sent.matchAll(/chaos (\{[^{}]*\})/gu)].at(-1)?.[1];
  return found === undefined ? undefined : TurnRequest.parse(JSON.parse(found));
}

/**
 * The marker that a tool with side effects leaves behind. Every model call makes another one, so that a repeated effect
 * shows.
 */
export function effectToken(marker: string, call: number): string {
  return `${marker}~w${String(call)}`;
}

/** All effects in a text, by marker. */
export function effectsIn(text: string): string[] {
  return [...text.matchAll(/(mk-[\w-]+)~w\d+/gu)].map((match) => match[1] ?? '');
}
