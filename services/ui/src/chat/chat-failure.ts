import { ConciergeError } from '@concierge/client';

/** What a language says about failures, by code. */
export interface FailureWords {
  /** What happened; where a code is missing, the service's own words stand. */
  readonly happened: Readonly<Record<string, string>>;
  /** What to do about it. */
  readonly advice: Readonly<Record<string, string>>;
}

/**
 * What happened and what to do about it, as sentences. Where the service has said more than what happened, that is the
 * advice: ours could contradict it.
 */
export function explainFailure(error: unknown, words: FailureWords): string {
  const { code, message } = isFailure(error) ? error : ConciergeError.from(error);
  const said = find(words.happened, code) ?? message.trim();
  const happened = /[.!?…]$/u.test(said) ? said : `${said}.`;
  const hasAdvice = find(words.happened, code) === undefined && /[.!?;:] \S/u.test(happened);
  return hasAdvice ? happened : `${happened} ${find(words.advice, code) ?? ''}`.trim();
}

/** What a turn failed with, as its events tell it. */
function isFailure(error: unknown): error is { readonly code: string; readonly message: string } {
  if (typeof error !== 'object' || error === null || error instanceof Error) return false;
  return 'code' in error && 'message' in error && typeof error.code === 'string' && typeof error.message === 'string';
}

function find(texts: Readonly<Record<string, string>>, code: string): string | undefined {
  return Object.hasOwn(texts, code) ? texts[code] : undefined;
}
