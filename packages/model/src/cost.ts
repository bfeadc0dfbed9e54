import type { ModelFacts } from '@concierge/contract';

interface TokenCounts {
  /** All of the prompt, cached part included. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}

/** US dollars of one call; null when the model has no price. Prices are per million tokens. */
export function costUsd(tokens: TokenCounts, price: ModelFacts['price']): number | null {
  if (price === undefined) return null;
  const fresh = Math.max(0, tokens.inputTokens - tokens.cachedInputTokens);
  const cached = tokens.cachedInputTokens * (price.cachedInput ?? price.input);
  return (fresh * price.input + cached + tokens.outputTokens * price.output) / 1_000_000;
}
