import { afterEach, describe, expect, it } from '@jest/globals';
import { ConciergeClient, ReplyText, type FeedEvent, type Retry, type Streamed, type TurnEvent, type TurnOptions } from '../src/index.ts';
import { answer, delta, done, encode, hangUp, refuse, ScriptedServer, session, stream, type Step } from './scripted-server.ts';

let server: ScriptedServer;
let client: ConciergeClient;
let retries: Retry[];

afterEach(async () => {
  await server[Symbol.asyncDispose]();
});

async function serve(...steps: readonly Step[]): Promise<void> {
  server = await ScriptedServer.start(...steps);
  client = new ConciergeClient({ baseUrl: server.url, apiKey: 'ck_live_test' });
  retries = [];
}

/** The next turn of the event loop: as fast as it goes, and still a pause. */
const soon = async (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const options = (given: TurnOptions = {}): TurnOptions => ({ wait: soon, onRetry: (retry) => retries.push(retry), ...given });

async function read(events: AsyncIterable<Streamed<TurnEvent>>): Promise<string> {
  const reply = new ReplyText();
  const types: string[] = [];
  for await (const event of events) {
    reply.add(event);
    types.push(event.type);
  }
  return `${types.at(-1) ?? 'nothing'}: ${reply.text}`;
}

const say = (given?: TurnOptions): AsyncGenerator<Streamed<TurnEvent>> =>
  client.streamTurn('cs', { message: 'Hello', sender: 'ann' }, options(given));

describe('a streamed turn', () => {
  it('yields each event once, in order, with its id', async () => {
    await serve(stream(encode(1, session, delta('Good '), delta('morning'), done)));
    const events: string[] = [];
    for await (const { id, type } of say({ busy: 'reject' })) events.push(`${String(id)} ${type}`);
    expect(events).toEqual(['1 session', '2 text_delta', '3 text_delta', '4 done']);
    expect(server.requests).toMatchObject([
      { method: 'POST', path: '/api/cs?busy=reject', headers: { 'x-api-key': 'ck_live_test', accept: 'text/event-stream' } },
    ]);
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual({ message: 'Hello', sender: 'ann' });
  });

  it('goes on after the last event when the stream is ended, broken or cut in the middle of an event', async () => {
    const half = encode(3, delta('never seen')).slice(0, 20);
    await serve(
      stream(encode(1, session, delta('one '))),
      stream(half, 'break'),
      stream(encode(3, delta('two ')) + half, 'end'),
      stream(encode(4, delta('three'), done)),
    );
    expect(await read(say())).toBe('done: one two three');
    expect(server.requests.map(({ path, headers }) => [path, headers['last-event-id']])).toEqual([
      ['/api/cs', undefined],
      ['/api/turns/t/events', '2'],
      ['/api/turns/t/events', '2'],
      ['/api/turns/t/events', '3'],
    ]);
  });

  it('reads text that was cut in the middle of a character', async () => {
    const bytes = Buffer.from(encode(1, session, delta('Grüße'), done));
    const middle = bytes.indexOf(Buffer.from('ü')) + 1;
    await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(bytes.subarray(0, middle), () => setImmediate(() => response.end(bytes.subarray(middle))));
    });
    expect(await read(say())).toBe('done: Grüße');
  });

  it('leaves out what comes again, also when a gateway begins at the start', async () => {
    await serve(stream(encode(1, session, delta('one ')), 'break'), stream(encode(1, session, delta('one '), delta('two'), done)));
    expect(await read(say())).toBe('done: one two');
  });

  it('takes events whose ids are lower than the last one: they were not seen', async () => {
    const reset = { type: 'text_reset', data: { reason: 'stream_lost' } } as const;
    await serve(stream(encode(8, session, delta('lost')), 'break'), stream(encode(1, reset, delta('again'), done)));
    expect(await read(say())).toBe('done: again');
  });

  it('is one turn, however often it has to be sent', async () => {
    await serve(hangUp, refuse('overloaded'), hangUp, stream(encode(1, session, done)));
    expect(await read(say())).toBe('done: ');
    expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'POST']);
    expect(new Set(server.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(new Set(server.requests.map(({ body }) => body)).size).toBe(1);
    await read(say());
    expect(new Set(server.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
  });

  it('waits as long as the service asks for, and longer after each failure in a row', async () => {
    await serve(refuse('shutting_down', { 'retry-after': '7' }), hangUp, hangUp, stream(encode(1, session)), stream(encode(2, done)));
    await read(say());
    const delays = retries.map(({ delayMs }) => delayMs);
    expect(delays[0]).toBe(7000);
    expect(delays[1]).toBeGreaterThanOrEqual(1000);
    expect(delays[2]).toBeGreaterThanOrEqual(2000);
    // A new event has come meanwhile.
    expect(delays[3]).toBeLessThanOrEqual(600);
    expect(retries.map(({ error }) => error.code)).toEqual(['shutting_down', 'unreachable', 'unreachable', 'unreachable']);
  });

  it('throws what was refused before the turn was accepted, and waits for it afterwards', async () => {
    await serve(refuse('rate_limited', { 'retry-after': '60' }));
    await expect(read(say())).rejects.toMatchObject({ status: 429, code: 'rate_limited', retryable: true, retryAfterMs: 60_000 });
    await server[Symbol.asyncDispose]();
    await serve(stream(encode(1, session)), refuse('rate_limited', { 'retry-after': '60' }), stream(encode(2, done)));
    expect(await read(say())).toBe('done: ');
    expect(retries.map(({ delayMs }) => delayMs)).toContain(60_000);
  });

  it.each([
    ['session_busy', 409, true],
    ['idempotency_conflict', 422, false],
    ['invalid_key', 401, false],
  ] as const)('throws %s at once', async (code, status, retryable) => {
    await serve(refuse(code));
    await expect(read(say())).rejects.toMatchObject({ name: 'ConciergeError', code, status, retryable, requestId: 'r' });
    expect(server.requests).toHaveLength(1);
  });

  it('gives up after so many failures in a row', async () => {
    await serve(stream(encode(1, session)), hangUp);
    await expect(read(say({ maxRetries: 3 }))).rejects.toMatchObject({ code: 'unreachable', isTransient: true });
    expect(server.requests).toHaveLength(4);
  });

  it('ends when the service reports that nothing comes after the given event', async () => {
    await serve(answer(204));
    expect(await read(client.followTurn('t', { after: '9' }))).toBe('nothing: ');
    expect(server.requests).toMatchObject([{ path: '/api/turns/t/events', headers: { 'last-event-id': '9' } }]);
  });

  it('ends the connection, and nothing else, when its reader leaves', async () => {
    const closed = Promise.withResolvers<void>();
    await serve((response) => {
      response.once('close', closed.resolve);
      stream(encode(1, session, delta('a')), 'stay')(response);
    });
    for await (const event of say()) if (event.type === 'text_delta') break;
    await closed.promise;
    expect(server.requests).toHaveLength(1);
  });

  it('rejects with the reason of the signal, while it reads and while it waits', async () => {
    await serve(stream(encode(1, session), 'stay'));
    const leave = new AbortController();
    const reading = (async () => {
      for await (const event of say({ signal: leave.signal })) if (event.type === 'session') leave.abort(new Error('left'));
    })();
    await expect(reading).rejects.toThrow('left');
    await server[Symbol.asyncDispose]();
    await serve(hangUp);
    const waiting = client.streamTurn('cs', { message: 'x' }, { signal: AbortSignal.timeout(50) });
    await expect(read(waiting)).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('refuses an answer that is no stream, and an event that is not what the interface promises', async () => {
    await serve(answer(200, { hello: 1 }));
    await expect(read(say())).rejects.toMatchObject({ code: 'unexpected_answer' });
    await server[Symbol.asyncDispose]();
    await serve(stream('event: text_delta\ndata: {"delta":7}\nid: 1\n\n'));
    await expect(read(say())).rejects.toMatchObject({ code: 'unexpected_answer' });
  });
});

describe('a whole reply', () => {
  const reply = {
    contact_id: 'c',
    turnId: 't',
    reply: 'Hi',
    toolCalls: [],
    usage: { inputTokens: 1, outputTokens: 1 },
    finishReason: 'stop',
  };

  it('is asked for again, as the same turn, when the connection breaks', async () => {
    await serve(hangUp, refuse('overloaded'), answer(200, reply));
    expect(await client.ask('books', { message: 'Hello' }, options())).toEqual(reply);
    expect(server.requests).toMatchObject([{ path: '/api/agents/books', headers: { accept: 'application/json' } }, {}, {}]);
    expect(new Set(server.requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  });

  it('is not asked for again where something else answers', async () => {
    await serve((response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'));
    await expect(client.ask('cs', { message: 'Hello' }, options())).rejects.toMatchObject({ code: 'unexpected_answer' });
    expect(server.requests).toHaveLength(1);
  });

  it('is given up after so many failures in a row, and while it waits, with the reason of the signal', async () => {
    await serve(hangUp);
    const given = options({ maxRetries: 2 });
    await expect(client.ask('cs', { message: 'Hello' }, given)).rejects.toMatchObject({ code: 'unreachable', isTransient: true });
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(server.requests).toHaveLength(3);
    const waiting = client.ask('cs', { message: 'Hello' }, { signal: AbortSignal.timeout(50) });
    await expect(waiting).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('is an error when the turn has failed: the same turn would fail again', async () => {
    await serve(refuse('provider_error'));
    await expect(client.ask('cs', { message: 'Hello' }, options())).rejects.toMatchObject({ code: 'provider_error', retryable: true });
    expect(server.requests).toHaveLength(1);
  });
});

describe('other requests', () => {
  it('cancel a turn, store a file and ask for anything else', async () => {
    const ref = { id: 'u1', name: 'a.txt', type: 'text/plain', size: 2 };
    await serve(answer(202, {}), answer(201, [ref]), answer(200, ['x']));
    await client.cancelTurn('t/1');
    expect(await client.upload(new File(['hi'], 'a.txt', { type: 'text/plain' }))).toEqual(ref);
    expect(await (await client.request('/api/agents')).json()).toEqual(['x']);
    expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /api/turns/t%2F1/cancel',
      'POST /api/uploads',
      'GET /api/agents',
    ]);
    expect(server.requests[1]?.body).toContain('filename="a.txt"');
  });

  it('report every error, and reject in time', async () => {
    await serve(refuse('revoked_key'), () => undefined);
    const reported: string[] = [];
    client = new ConciergeClient({ baseUrl: server.url, apiKey: 'ck_live_test', onError: ({ code }) => reported.push(code) });
    await expect(client.request('/api/agents')).rejects.toMatchObject({ code: 'revoked_key' });
    expect(reported).toEqual(['revoked_key']);
    await expect(client.request('/api/agents', { timeoutMs: 20 })).rejects.toMatchObject({ code: 'unreachable' });
  });

  it('read an answer that takes longer than their time, as long as something comes', async () => {
    const pieces = ['one ', 'two ', 'three ', 'four ', 'five ', 'six'];
    await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      const left = [...pieces];
      const clock = setInterval(() => {
        const piece = left.shift();
        if (piece !== undefined) response.write(piece);
        if (left.length === 0) response.end(() => clearInterval(clock));
      }, 250);
    });
    const slow = await client.request('/api/tenant/export', { timeoutMs: 1000 });
    expect([slow.status, slow.headers.get('content-type'), await slow.text()]).toEqual([200, 'text/plain', pieces.join('')]);
  });

  it('read an answer that arrived while this process stood still', async () => {
    await serve((response) => {
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write('one ', () =>
        setImmediate(() => {
          response.end('two');
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
        }),
      );
    });
    const late = await client.request('/api/tenant/export', { timeoutMs: 900 });
    expect(await late.text()).toBe('one two');
  });

  it('end when an answer stops in the middle, or when it is not wanted any more', async () => {
    const first: Step = (response) => void response.writeHead(200, { 'content-type': 'text/plain' }).write('one ');
    await serve(first);
    // In this time the answer has to begin, on any machine.
    const stopped = await client.request('/api/tenant/export', { timeoutMs: 3000 });
    await expect(stopped.text()).rejects.toMatchObject({ name: 'TimeoutError' });
    const user = new AbortController();
    const left = await client.request('/api/tenant/export', { signal: user.signal });
    user.abort(new Error('left'));
    await expect(left.text()).rejects.toThrow('left');
  });
});

describe('the feed of a tenant', () => {
  const change = (kind: string, json: object): string => `event: ${kind}\ndata: ${JSON.stringify(json)}\n\n`;
  const again = change('again', {});

  it('yields changes over as many connections as it takes, and leaves out kinds that it does not know', async () => {
    await serve(
      refuse('overloaded'),
      stream(again + change('turn', { id: 't', contact_id: 'c', status: 'done' }) + change('weather', { rain: true })),
      hangUp,
      refuse('internal_error'),
      stream(again + change('handoff', { id: 'c' }), 'stay'),
    );
    const heard: FeedEvent[] = [];
    for await (const event of client.followFeed({ wait: soon, onRetry: (retry) => retries.push(retry) })) {
      heard.push(event);
      if (event.kind === 'handoff') break;
    }
    expect(heard).toEqual([
      { kind: 'again' },
      { kind: 'turn', id: 't', contact_id: 'c', status: 'done' },
      { kind: 'again' },
      { kind: 'handoff', id: 'c' },
    ]);
    // The waits grow again from the first one after a connection that has brought something.
    expect(retries.map(({ attempt }) => attempt)).toEqual([1, 1, 2, 3]);
    expect(server.requests.map(({ path }) => path)).toEqual(Array.from({ length: 5 }, () => '/api/feed'));
  });

  it('ends with its signal, and with what is refused for good', async () => {
    await serve(refuse('scope_required'), stream(again, 'stay'));
    await expect(client.followFeed({ wait: soon }).next()).rejects.toMatchObject({ code: 'scope_required' });
    const over = new AbortController();
    const feed = client.followFeed({ wait: soon, signal: over.signal });
    expect(await feed.next()).toMatchObject({ value: { kind: 'again' } });
    const next = feed.next();
    over.abort(new Error('left'));
    await expect(next).rejects.toThrow('left');
  });
});
