import { describe, expect, it } from '@jest/globals';
import { AppError, errorCodeNames, OpenAiError, type ErrorCode } from '@concierge/contract';
import { openAiErrorHeaders, toOpenAiError } from './openai-error.ts';

describe('toOpenAiError', () => {
  it.each(errorCodeNames)('has words for %s', (code) => {
    expect(OpenAiError.safeParse(toOpenAiError(new AppError(code))).success).toBe(true);
  });

  it.each([
    ['revoked_key', 'invalid_request_error', 'invalid_api_key'],
    ['rate_limited', 'rate_limit_error', 'rate_limit_exceeded'],
    ['provider_error', 'server_error', 'provider_error'],
    ['invalid_json', 'invalid_request_error', 'invalid_json'],
  ] as const)('maps %s to %s', (code, type, name) => {
    expect(toOpenAiError(new AppError(code, 'Why.')).error).toEqual({ message: 'Why.', type, param: null, code: name });
  });

  it('names the field that is wrong as OpenAI writes it', () => {
    const errors = [{ path: 'messages.0.content.12.type', message: 'is no type' }];
    expect(toOpenAiError(new AppError('invalid_request', undefined, { errors })).error).toMatchObject({
      param: 'messages[0].content[12].type',
      message: 'messages[0].content[12].type: is no type',
    });
    const model = new AppError('not_found', undefined, { errors: [{ path: 'model', message: 'x' }] });
    expect(toOpenAiError(model).error).toMatchObject({ param: 'model', code: 'model_not_found' });
  });
});

describe('openAiErrorHeaders', () => {
  it('let a client ask again only where that is the same request, not a second turn', () => {
    const retry = (code: ErrorCode, hasTurn: boolean): string | undefined =>
      openAiErrorHeaders(new AppError(code), { hasTurn })['X-Should-Retry'];
    expect(retry('overloaded', false)).toBe('true');
    expect(retry('contact_mismatch', false)).toBe('false');
    expect(retry('provider_error', true)).toBe('false');
    const inAnHour = new AppError('rate_limited', undefined, { retryAfterSeconds: 3600 });
    expect(openAiErrorHeaders(inAnHour, { hasTurn: false })['X-Should-Retry']).toBe('false');
  });
});
