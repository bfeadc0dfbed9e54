import { describe, expect, it } from '@jest/globals';
import { AppError, Problem, errorCodeNames } from '@concierge/contract';
import { problemHeaders, toAppError, toProblem } from './handle-error.ts';

describe('toProblem', () => {
  it.each(errorCodeNames)('renders %s as the contract describes it', (code) => {
    const problem = toProblem(new AppError(code), 'r_1');
    expect(Problem.parse(problem)).toEqual(problem);
    expect(problem).toMatchObject({ code, requestId: 'r_1' });
  });
});

describe('toAppError', () => {
  it('hides what is not meant for a client', () => {
    const error = toAppError(new Error('password is hunter2'));
    expect(error.code).toBe('internal_error');
    expect(JSON.stringify(toProblem(error, 'r_1'))).not.toContain('hunter2');
    expect(error.cause).toBeInstanceOf(Error);
  });

  it.each([
    [new URIError('malformed'), 'invalid_request'],
    [{ type: 'entity.too.large', status: 413 }, 'too_large'],
    [{ type: 'request.aborted', status: 400 }, 'invalid_request'],
    [{ type: 'encoding.unsupported', status: 415 }, 'unsupported_media_type'],
    ['a string', 'internal_error'],
    [undefined, 'internal_error'],
  ])('translates %p', (thrown, code) => {
    expect(toAppError(thrown).code).toBe(code);
  });
});

describe('problemHeaders', () => {
  it('shows a client without a key how to authenticate', () => {
    expect(problemHeaders(new AppError('missing_key'))['WWW-Authenticate']).toBe('Bearer realm="concierge"');
  });

  it('always names a time to retry where a retry helps', () => {
    expect(problemHeaders(new AppError('shutting_down'))['Retry-After']).toBe('1');
    expect(problemHeaders(new AppError('rate_limited', undefined, { retryAfterSeconds: 17 }))['Retry-After']).toBe('17');
  });

  it('describes the limit on waiting turns', () => {
    expect(problemHeaders(new AppError('too_many_waiting'))).toMatchObject({
      'RateLimit-Policy': '"waiting";q=50',
      RateLimit: '"waiting";r=0;t=1',
    });
  });
});
