import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  contextOverflow,
  cut,
  cutMidStream,
  finish,
  malformedChunk,
  raw,
  say,
  startScriptedModel,
  status,
  type ScriptedModel,
} from '@concierge/testing';
import { ModelError } from '../src/index.ts';
import type { FailedAttempt, Models } from '../src/openai/index.ts';
import { API_KEY, asking, findEnd, collectEvents, heard, modelsOver, neverAborted } from './provider-fixture.ts';

let first: ScriptedModel;
let second: ScriptedModel;
let models: Models;
let failures: FailedAttempt[];

beforeEach(async () => {
  first = await startScriptedModel();
  second = await startScriptedModel({ fallback: [say('from the fallback')] });
  ({ models, failures } = modelsOver({ urls: [first.url, second.url] }));
});
afterEach(async () => {
  models.close();
  await Promise.all([first.close(), second.close()]);
});

const ask = () => collectEvents(models.forRef().stream(asking('hi'), neverAborted));

function buildUrl(server: Server): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? String(address.port) : ''}/v1`;
}

async function catchFailure(reply: Promise<unknown>): Promise<ModelError> {
  const error = await reply.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ModelError) return error;
  throw new Error('no ModelError was thrown', { cause: error });
}

describe('retries', () => {
  it('asks the same model again after server errors, and reports it', async () => {
    first.enqueue([status(500)], [status(503)], [say('third time')]);
    const events = await ask();
    expect(events.map((event) => event.type)).toEqual(['text', 'end']);
    expect(findEnd(events)).toMatchObject({ text: 'third time', model: 'p0/m' });
    expect(failures).toMatchObject([
      { model: 'p0/m', attempt: 1, kind: 'unavailable', status: 500 },
      { model: 'p0/m', attempt: 2, kind: 'unavailable', status: 503 },
    ]);
    expect(failures.every(({ waitMs }) => waitMs !== null && waitMs > 0)).toBe(true);
  });

  it('waits as long as Retry-After asks', async () => {
    first.enqueue([status(429, { headers: { 'retry-after': '0.2' } })], [say('now')]);
    await ask();
    const [refused, answered] = first.requests;
    expect(failures).toMatchObject([{ kind: 'rate_limited', status: 429, waitMs: 200 }]);
    expect((answered?.startedAtMs ?? 0) - (refused?.startedAtMs ?? 0)).toBeGreaterThanOrEqual(190);
  });

  it('turns to the fallback at once when Retry-After asks for too much', async () => {
    first.enqueue([status(429, { headers: { 'retry-after': '3600' } })]);
    expect(findEnd(await ask()).model).toBe('p1/m');
    expect(failures).toMatchObject([{ model: 'p0/m', waitMs: null }]);
    expect(first.requests).toHaveLength(1);
  });

  it('starts over with a reset when the stream breaks off after text', async () => {
    first.enqueue(cutMidStream('half of the answer', 2), [say('the whole answer')]);
    const events = await ask();
    expect(events.map((event) => event.type)).toEqual(['text', 'reset', 'text', 'end']);
    expect(events[1]).toEqual({ type: 'reset', reason: 'restarted' });
    expect(heard(events)).toBe('the whole answer');
    expect(findEnd(events).text).toBe('the whole answer');
  });

  it('starts over without a reset when nothing had been emitted', async () => {
    first.enqueue([cut()], [say('whole')]);
    expect((await ask()).map((event) => event.type)).toEqual(['text', 'end']);
  });

  it('treats a stream that ends politely but without a finish reason as broken', async () => {
    first.enqueue([say('half'), raw('data: [DONE]\n\n'), cut()], [say('whole')]);
    expect(heard(await ask())).toBe('whole');
    expect(failures).toMatchObject([{ kind: 'unavailable', reason: expect.stringContaining('ended before') }]);
  });

  it.each([
    ['is no JSON', malformedChunk()],
    ['has another shape', raw('data: {"choices":"none"}\n\n')],
    ['is a number', raw('data: 7\n\n')],
    ['reports an error', raw('data: {"error":{"message":"Provider disconnected","code":502}}\n\n')],
    ['finishes with an error', finish('error')],
    ['calls a tool without a name', raw('data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c"}]},"finish_reason":"stop"}]}\n\n')],
  ])('asks again after a chunk that %s', async (_, broken) => {
    first.enqueue([say('so far'), broken], [say('whole')]);
    const events = await ask();
    expect(heard(events)).toBe('whole');
    expect(failures).toMatchObject([{ kind: 'unavailable' }]);
  });

  it('keeps a reply whose connection broke after the finish reason', async () => {
    first.enqueue([raw('data: {"choices":[{"index":0,"delta":{"content":"all"},"finish_reason":"stop"}]}\n\n'), cut()]);
    expect(findEnd(await ask())).toMatchObject({ text: 'all', usageEstimated: true });
    expect(failures).toEqual([]);
  });

  it('sends a request once more, and calls it no failure, when a kept connection is closed as it is used', async () => {
    const used = new WeakSet<object>();
    const answer = 'data: {"choices":[{"index":0,"delta":{"content":"here"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
    const server = createServer((request, response) => {
      if (used.has(request.socket)) request.socket.destroy();
      used.add(request.socket);
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answer);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const lone = modelsOver({ urls: [buildUrl(server)] });
    const texts = [];
    for (let round = 0; round < 3; round += 1)
      texts.push(heard(await collectEvents(lone.models.forRef().stream(asking('hi'), neverAborted))));
    lone.models.close();
    server.close();
    expect(texts).toEqual(['here', 'here', 'here']);
    expect(lone.failures).toEqual([]);
  });
});

describe('fallbacks', () => {
  it('takes the next model when the first is out of attempts, voiding its text', async () => {
    first.enqueue(cutMidStream('one two', 1), cutMidStream('one two', 1), cutMidStream('one two', 1));
    const events = await ask();
    expect(heard(events)).toBe('from the fallback');
    expect(events.filter((event) => event.type === 'reset').map(({ reason }) => reason)).toEqual([
      'restarted',
      'restarted',
      'fallback_model',
    ]);
    expect(findEnd(events)).toMatchObject({ text: 'from the fallback', model: 'p1/m', usage: { model: 'p1/m', calls: 1 } });
  });

  it.each([401, 402, 403, 404])('does not ask again after %d, but asks the fallback', async (code) => {
    first.enqueue([status(code)]);
    expect(findEnd(await ask()).model).toBe('p1/m');
    expect(first.requests).toHaveLength(1);
    expect(failures).toMatchObject([{ kind: 'rejected', status: code, waitMs: null }]);
  });

  it('does not wait for credit to come back', async () => {
    first.enqueue([
      status(429, {
        body: { error: { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota' } },
      }),
    ]);
    expect(findEnd(await ask()).model).toBe('p1/m');
    expect(first.requests).toHaveLength(1);
  });

  it('passes over a model whose provider has no key', async () => {
    expect(findEnd(await collectEvents(models.forRef('nobody/gpt').stream(asking('hi'), neverAborted))).model).toBe('p1/m');
    expect(failures).toMatchObject([{ model: 'nobody/gpt', attempt: 0 }]);
  });

  it('ends in the last failure when all are used up, and keeps the text so far', async () => {
    second.when('hi', [status(500)], [status(500)], [status(529)]);
    first.when('hi', cutMidStream('one two', 1), [status(500)], [status(500)]);
    const said: string[] = [];
    const reply = async (): Promise<void> => {
      for await (const event of models.forRef().stream(asking('hi'), neverAborted)) said.push(event.type);
    };
    expect(await catchFailure(reply())).toMatchObject({ kind: 'unavailable', status: 529, model: 'p1/m' });
    expect(said).toEqual(['text']);
  });
});

describe('refusals', () => {
  it('are final for a request that is not valid', async () => {
    first.enqueue([
      status(400, { body: { error: { message: 'Unknown parameter', type: 'invalid_request_error', code: 'unknown_parameter' } } }),
    ]);
    expect(await catchFailure(ask())).toMatchObject({ kind: 'rejected', status: 400 });
    expect([first.requests.length, second.requests.length]).toEqual([1, 0]);
  });

  it('report when the prompt does not fit, so that it can be made shorter', async () => {
    first.enqueue(contextOverflow);
    expect(await catchFailure(ask())).toMatchObject({ kind: 'context_overflow', model: 'p0/m' });
    expect([first.requests.length, second.requests.length]).toEqual([1, 0]);
  });

  it('report it too when it comes in the stream, or in words only', async () => {
    first.enqueue(
      [raw('data: {"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum","code":400}}\n\n')],
      [
        status(400, {
          body: {
            error: { message: 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).', code: 400 },
          },
        }),
      ],
    );
    expect(await catchFailure(ask())).toMatchObject({ kind: 'context_overflow' });
    expect(await catchFailure(ask())).toMatchObject({ kind: 'context_overflow' });
  });

  it('never quote the key', async () => {
    first.enqueue([status(400, { body: { error: { message: `Bad key ${API_KEY}`, type: 'x', code: null } } })]);
    const error = await catchFailure(ask());
    expect(error.message).toContain('[key]');
    expect(JSON.stringify([error.message, failures])).not.toContain(API_KEY);
  });

  it('are read when the body itself is the error', async () => {
    first.enqueue([status(429, { body: { message: 'No credit', code: 'insufficient_quota' } })]);
    expect(findEnd(await ask()).model).toBe('p1/m');
    expect(failures).toMatchObject([
      { kind: 'rejected', status: 429, code: 'insufficient_quota', reason: expect.stringContaining('No credit') },
    ]);
  });

  it('may be pages of a proxy instead of JSON', async () => {
    first.enqueue([status(502, { body: '<html>Bad Gateway</html>' })], [say('back')]);
    expect(findEnd(await ask()).text).toBe('back');
  });
});

describe('a provider that cannot be reached', () => {
  it('is unavailable', async () => {
    const nobody = createServer();
    await once(nobody.listen(0, '127.0.0.1'), 'listening');
    const lone = modelsOver({ urls: [buildUrl(nobody)] });
    await promisify(nobody.close.bind(nobody))();
    const error = await catchFailure(collectEvents(lone.models.forRef().stream(asking('hi'), neverAborted)));
    expect(error).toMatchObject({ kind: 'unavailable', status: undefined });
    expect(lone.failures).toHaveLength(3);
  });

  it('is rejected before anything is sent when no model has a key', () => {
    const lone = modelsOver({ urls: [first.url] });
    expect(() => lone.models.forRef('nobody/gpt')).toThrow(ModelError);
  });
});
