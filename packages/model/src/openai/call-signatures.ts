import type { CallExtra } from '@concierge/contract';
import { z } from 'zod';
import type { AssistantModelMessage } from '../model.ts';

/**
 * Google's signature of a call as OpenRouter gives it and wants it back: in `reasoning_details` of the message, by the
 * id of the call (https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks).
 */
const CallSignature = z.object({
  type: z.literal('reasoning.encrypted'),
  id: z.string().min(1),
  data: z.string().min(1),
  format: z.literal('google-gemini-v1'),
  index: z.number().nullish(),
});
type CallSignature = z.infer<typeof CallSignature>;

/** Under which a call keeps it. */
const OPENROUTER = 'openrouter';
/** What Google documents for calls of other models (https://ai.google.dev/gemini-api/docs/thought-signatures). */
export const UNSIGNED = 'skip_thought_signature_validator';

/** The signatures of one reply, which come before their calls or behind them. */
export class CallSignatures {
  readonly #byCall = new Map<string, CallExtra>();

  /**
   * Of `reasoning_details`, nothing else is kept: text comes unsigned, and Google refuses it
   * (https://github.com/earendil-works/pi/issues/9100).
   */
  add(details: readonly unknown[]): void {
    for (const detail of details) {
      const { data: found } = CallSignature.safeParse(detail);
      if (found === undefined) continue;
      const { id, index, ...rest } = found;
      this.#byCall.set(id, { [OPENROUTER]: { ...rest, index: index ?? 0 } });
    }
  }

  find(callId: string): CallExtra | undefined {
    return this.#byCall.get(callId);
  }
}

/**
 * What stands on the call itself. Without the signature that came over OpenRouter: a provider of the same name may have
 * another address by now, whose server refuses a field that it does not know.
 */
export function ofCall(extra: CallExtra | undefined): CallExtra | undefined {
  if (extra?.[OPENROUTER] === undefined) return extra;
  const { [OPENROUTER]: _signature, ...others } = extra;
  return Object.keys(others).length === 0 ? undefined : others;
}

interface Wanted {
  /** The model that is asked made these calls. */
  readonly isOwn: boolean;
  /** It refuses the first call without a signature. */
  readonly needsOne: boolean;
}

/** `reasoning_details` of a message with calls; undefined where there are none. */
export function buildReasoningDetails(
  { toolCalls }: Pick<AssistantModelMessage, 'toolCalls'>,
  { isOwn, needsOne }: Wanted,
): readonly CallSignature[] | undefined {
  const own = isOwn ? toolCalls : [];
  const details = own.flatMap(({ id, extra }) => CallSignature.safeParse({ ...extra?.[OPENROUTER], id }).data ?? []);
  const [first] = toolCalls;
  // One for a message, and that for its first call: https://github.com/RooCodeInc/Roo-Code/pull/10640.
  if (first !== undefined && needsOne && !details.some(({ id }) => id === first.id))
    return [{ type: 'reasoning.encrypted', id: first.id, data: UNSIGNED, format: 'google-gemini-v1', index: 0 }];
  return details.length === 0 ? undefined : details;
}
