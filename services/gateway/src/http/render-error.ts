import type { AppError } from '@concierge/contract';
import { openAiErrorHeaders, toOpenAiError } from '../openai/openai-error.ts';
import type { RequestContext } from './exchange.ts';
import { problemHeaders, toProblem } from './problem.ts';

export interface RenderedError {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Renders an error in the format of its path's protocol. */
export function renderError(
  error: AppError,
  { shape, requestId, turnId }: Pick<RequestContext, 'shape' | 'requestId' | 'turnId'>,
): RenderedError {
  const headers = problemHeaders(error);
  switch (shape) {
    case 'problem': {
      return { headers, body: JSON.stringify(toProblem(error, requestId)) };
    }
    case 'openai': {
      const own = openAiErrorHeaders(error, { hasTurn: turnId !== undefined });
      return { headers: { ...headers, ...own }, body: JSON.stringify(toOpenAiError(error)) };
    }
  }
}
