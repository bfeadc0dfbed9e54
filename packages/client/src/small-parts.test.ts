import { describe, expect, it } from '@jest/globals';
import { errorCodeNames, errorCodes, limits } from '@concierge/contract';
import { ConciergeError, readRetryAfter } from './concierge-error.ts';
import { readFeedEvent, readTurnEvent, readVisitorEvent } from './read-event.ts';
import { retryDelayMs, waitToRetry } from './retries.ts';
import { SILENCE_MS } from './stream-events.ts';

describe('ConciergeError.fromResponse', () => {
  it('repeats the problem document, field by field, and when to try again', async () => {
    const problem = {
      type: 'about:blank',
      title: 'T',
      status: 400,
      detail: 'The body is not valid',
      code: 'invalid_request',
      requestId: 'r1',
    };
    const errors = [{ path: 'message', message: 'must not be empty' }];
    const failure = await ConciergeError.fromResponse(
      Response.json({ ...problem, errors }, { status: 400, headers: { 'retry-after': '3' } }),
    );
    expect(failure).toMatchObject({ message: 'The body is not valid (message must not be empty)', requestId: 'r1', retryAfterMs: 3000 });
  });

  it('copes with an answer that is no problem document', async () => {
    expect(await ConciergeError.fromResponse(new Response('<html>', { status: 502 }))).toMatchObject({
      code: 'unexpected_answer',
      status: 502,
      isTransient: true,
    });
  });
});

describe('ConciergeError', () => {
  it.each(errorCodeNames)('knows whether %s is worth another try, as the interface does', (code) => {
    const { status, retryable } = errorCodes[code];
    expect(new ConciergeError('', { status, code }).retryable).toBe(retryable);
  });

  it('is repeated by the client itself when the answer is not about the request', () => {
    const repeated = errorCodeNames.filter((code) => new ConciergeError('', { status: errorCodes[code].status, code }).isTransient);
    expect(repeated).toEqual(['request_timeout', 'overloaded', 'shutting_down']);
    expect(ConciergeError.from(new TypeError('fetch failed'))).toMatchObject({ code: 'unreachable', isTransient: true });
  });
});

describe('readRetryAfter', () => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  it.each([
    [null, undefined],
    ['3', 3000],
    ['Fri, 20 Nov 2026 12:00:05 GMT', 5000],
    ['Fri, 20 Nov 2026 11:00:00 GMT', 0],
    ['soon', undefined],
  ])('reads %s as %s ms', (header, ms) => {
    expect(readRetryAfter(header, now)).toBe(ms);
  });
});

describe('waitToRetry', () => {
  it('does not wait when it is aborted as soon as it reports the retry', async () => {
    const stopped = new AbortController();
    const error = new ConciergeError('', { status: 503, code: 'overloaded', retryAfterMs: 3_600_000 });
    const onRetry = (): void => stopped.abort(new Error('given up'));
    await expect(waitToRetry(1, error, { signal: stopped.signal, onRetry })).rejects.toThrow('given up');
  });
});

describe('retryDelayMs', () => {
  it('doubles up to its limit', () => {
    expect([1, 2, 3, 30].map((attempt) => retryDelayMs(attempt, () => 0))).toEqual([500, 1000, 2000, 15_000]);
  });

  it('adds at most a fifth', () => {
    expect(retryDelayMs(1, () => 1)).toBe(600);
  });
});

describe('an event', () => {
  it('is left out when it is of a type that is not known', () => {
    expect(readVisitorEvent('tool_call_start', '{}')).toBeNull();
    expect(readTurnEvent('step', '{}')).toBeNull();
    expect(readTurnEvent('constructor', '{}')).toBeNull();
    expect(readFeedEvent('weather', '{}')).toBeNull();
  });

  it('keeps fields that are not known', () => {
    expect(readTurnEvent('text_delta', '{"delta":"a","more":1}')).toEqual({ type: 'text_delta', data: { delta: 'a', more: 1 } });
  });

  it.each(['{}', '{"delta":1}', 'null', '[]', '{"delta":'])('is refused when it is not what the interface promises: %s', (json) => {
    const refused = expect.objectContaining({ code: 'unexpected_answer', isTransient: false });
    expect(() => readTurnEvent('text_delta', json)).toThrow(refused);
    expect(() => readFeedEvent('turn', json)).toThrow(refused);
  });
});

it('takes a connection for dead after three missed heartbeats', () => {
  expect(SILENCE_MS).toBe(limits.sseHeartbeatMs * 3);
});
