import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { eventually, finish, hang, raw, say, startScriptedModel, status, wait, type ScriptedModel } from '@concierge/testing';
import type { ModelEvent, ModelTool } from '../src/index.ts';
import type { ModelLimits } from '../src/openai/index.ts';
import { DRAIN_MS } from '../src/openai/transport.ts';
import { asking, findEnd, collectEvents, heard, modelsOver, neverAborted } from './provider-fixture.ts';

let server: ScriptedModel;
const open: { close(): void }[] = [];

beforeEach(async () => {
  server = await startScriptedModel();
});
afterEach(async () => {
  for (const models of open.splice(0)) models.close();
  await server.close();
});

function modelWith(limits: Partial<ModelLimits> = {}) {
  const { models, failures } = modelsOver({ urls: [server.url], limits: { attempts: 1, ...limits } });
  open.push(models);
  return { model: models.forRef(), failures };
}

const readTool: ModelTool = { name: 'read', description: 'Reads.', parameters: { type: 'object' } };

/** A piece of the arguments of one call, which begins with the first of them. */
function callDelta(text: string): string {
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'read', arguments: text } };
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`;
}

class Cancelled extends Error {}

/** Reads until some text came, aborts, and returns what the reader then gets. */
async function abortAfterText(stream: AsyncIterable<ModelEvent>, abort: () => void): Promise<unknown> {
  try {
    for await (const event of stream) if (event.type === 'text') abort();
    return 'ended';
  } catch (error) {
    return error;
  }
}

describe('silence', () => {
  it('before the first byte is a timeout', async () => {
    server.enqueue([wait(10_000), say('late')]);
    const { model } = modelWith({ firstByteMs: 2000 });
    await expect(collectEvents(model.stream(asking('hi'), neverAborted))).rejects.toMatchObject({ kind: 'timeout' });
    await eventually(() => server.requests[0]?.aborted);
  });

  it('in the middle of a reply is a timeout, and the reply starts over', async () => {
    server.enqueue([say('half'), hang()], [say('whole')]);
    const { model, failures } = modelWith({ attempts: 2, idleMs: 50 });
    const events = await collectEvents(model.stream(asking('hi'), neverAborted));
    expect(events.map((event) => event.type)).toEqual(['text', 'reset', 'text', 'end']);
    expect(failures).toMatchObject([{ kind: 'timeout' }]);
  });

  it('before the headers ends sooner than the wait for a first token', async () => {
    server.enqueue([wait(60_000)]);
    const { model } = modelWith({ headersMs: 50, firstByteMs: 60_000 });
    await expect(collectEvents(model.stream(asking('hi'), neverAborted))).rejects.toMatchObject({
      kind: 'timeout',
      message: expect.stringContaining('nothing from the provider for 50 ms'),
    });
  });

  it.each([
    ['before the headers', [wait(60_000)], { headersMs: 50 }],
    ['before the first token', [raw(': started\n\n'), hang()], { firstTokenMs: 50 }],
    ['in the middle of a reply', [say('half'), hang()], { silenceMs: 50 }],
  ])('%s brings the fallback at once', async (_case, script, timeouts) => {
    await using fallback = await startScriptedModel({ fallback: [say('whole')] });
    server.enqueue(script, script);
    const { models, failures } = modelsOver({ urls: [server.url, fallback.url], limits: { attempts: 3 }, firstFacts: { timeouts } });
    open.push(models);
    expect(heard(await collectEvents(models.forRef().stream(asking('hi'), neverAborted)))).toBe('whole');
    expect(failures).toMatchObject([{ model: 'p0/m', kind: 'timeout', waitMs: null }]);
    expect(fallback.requests).toHaveLength(1);
  });

  it('where there is no other model is asked once more and no third time', async () => {
    server.enqueue([wait(60_000)], [wait(60_000)], [say('too late')]);
    const { model, failures } = modelWith({ headersMs: 50, attempts: 3 });
    await expect(collectEvents(model.stream(asking('hi'), neverAborted))).rejects.toMatchObject({ kind: 'timeout' });
    // On a busy machine the first one is given up before it has reached the server.
    expect(failures).toMatchObject([{ waitMs: expect.any(Number) }, { waitMs: null }]);
  });

  it('may last as long as the providers file sets for the model', async () => {
    server.enqueue([raw(': started\n\n'), wait(300), say('thought')]);
    const facts = { timeouts: { firstTokenMs: 60_000 } };
    const { models } = modelsOver({ urls: [server.url], limits: { firstByteMs: 50, attempts: 1 }, facts });
    open.push(models);
    expect(findEnd(await collectEvents(models.forRef().stream(asking('hi'), neverAborted))).text).toBe('thought');
  });

  it.each([
    ['once a call has begun', [say('half'), raw(callDelta('{"path":')), wait(300), raw(callDelta('"a"}'))]],
    ['between a sentence and a call that comes in one piece', [say('I will look. '), wait(300), raw(callDelta('{"path":"a"}'))]],
  ])('may last as long as before a first token %s', async (_case, script) => {
    server.enqueue([...script, finish('tool_calls')]);
    const { model, failures } = modelWith({ idleMs: 50 });
    const end = findEnd(await collectEvents(model.stream(asking('look', { tools: [readTool] }), neverAborted)));
    expect(end.toolCalls).toEqual([{ id: 'call_1', name: 'read', arguments: '{"path":"a"}' }]);
    expect(failures).toEqual([]);
  });

  it.each([
    ['where there are no tools', 'A sentence.', []],
    ['in mid-sentence', 'I will', [readTool]],
  ])('after text ends an attempt %s', async (_case, text, tools) => {
    server.enqueue([say(text), hang()]);
    const { model, failures } = modelWith({ idleMs: 50 });
    await expect(collectEvents(model.stream(asking('look', { tools }), neverAborted))).rejects.toMatchObject({ kind: 'timeout' });
    expect(failures).toMatchObject([{ reason: 'nothing from the provider for 50 ms' }]);
  });

  it('after the finish reason only costs the usage figures', async () => {
    server.enqueue([raw('data: {"choices":[{"index":0,"delta":{"content":"all"},"finish_reason":"stop"}]}\n\n'), hang()]);
    const { model, failures } = modelWith({ afterFinishMs: 50 });
    expect(findEnd(await collectEvents(model.stream(asking('hi'), neverAborted)))).toMatchObject({ text: 'all', usageEstimated: true });
    expect(failures).toEqual([]);
  });

  it('is broken by comments while the model thinks', async () => {
    const ping = [raw(': thinking\n\n'), wait(1000)];
    server.enqueue([...ping, ...ping, ...ping, ...ping, say('thought')]);
    const { model } = modelWith({ firstByteMs: 3500 });
    expect(findEnd(await collectEvents(model.stream(asking('hi'), neverAborted))).text).toBe('thought');
  });

  it('is not what this process makes of its own pause', async () => {
    server.enqueue([wait(1000), say('there')]);
    const { model } = modelWith({ firstByteMs: 3000 });
    const reply = collectEvents(model.stream(asking('hi'), neverAborted));
    await eventually(() => server.requests.length === 1);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000);
    expect(findEnd(await reply).text).toBe('there');
  });

  it('or not, an attempt has an end', async () => {
    server.enqueue([say('x'.repeat(1000), { chunks: 1000, delayMs: 10 })]);
    const { model } = modelWith({ attemptMs: 100 });
    await expect(collectEvents(model.stream(asking('hi'), neverAborted))).rejects.toMatchObject({ kind: 'timeout' });
  });
});

describe('an abort', () => {
  it('before the call sends nothing', async () => {
    const { model } = modelWith();
    await expect(collectEvents(model.stream(asking('hi'), AbortSignal.abort(new Cancelled())))).rejects.toBeInstanceOf(Cancelled);
    expect(server.requests).toHaveLength(0);
  });

  it('while the provider hangs ends the request', async () => {
    server.enqueue([hang()]);
    const { model, failures } = modelWith({ attempts: 3 });
    const controller = new AbortController();
    const reply = collectEvents(model.stream(asking('hi'), controller.signal));
    await eventually(() => server.requests.length === 1);
    controller.abort(new Cancelled());
    await expect(reply).rejects.toBeInstanceOf(Cancelled);
    await eventually(() => server.requests[0]?.aborted);
    expect(failures).toEqual([]);
  });

  it('in the middle of a reply ends it with the reason, not as a failure', async () => {
    server.enqueue([say('half'), hang()]);
    const { model, failures } = modelWith({ attempts: 3 });
    const controller = new AbortController();
    const outcome = await abortAfterText(model.stream(asking('hi'), controller.signal), () => controller.abort(new Cancelled()));
    expect(outcome).toBeInstanceOf(Cancelled);
    await eventually(() => server.requests[0]?.aborted);
    expect(failures).toEqual([]);
    expect(server.requests).toHaveLength(1);
  });

  it('during the wait between attempts does not wait', async () => {
    server.enqueue([status(429, { headers: { 'retry-after': '20' } })]);
    const { model, failures } = modelWith({ attempts: 3 });
    const controller = new AbortController();
    const reply = collectEvents(model.stream(asking('hi'), controller.signal));
    await eventually(() => failures.length === 1);
    controller.abort(new Cancelled());
    await expect(reply).rejects.toBeInstanceOf(Cancelled);
    expect(server.requests).toHaveLength(1);
  });

  it('of one reply leaves others alone', async () => {
    server.enqueue([say('half'), hang()], [wait(50), say('other')]);
    const { model } = modelWith();
    const controller = new AbortController();
    const cancelled = abortAfterText(model.stream(asking('one'), controller.signal), () => controller.abort(new Cancelled()));
    await eventually(() => server.requests.length === 1);
    const other = collectEvents(model.stream(asking('two'), neverAborted));
    expect(await cancelled).toBeInstanceOf(Cancelled);
    expect(findEnd(await other).text).toBe('other');
  });
});

describe('a reader', () => {
  it('that leaves early ends the request at once', async () => {
    server.enqueue([say('word '.repeat(1000), { chunks: 1000, delayMs: 10 })]);
    const { model } = modelWith();
    const timers = jest.spyOn(globalThis, 'setTimeout');
    for await (const event of model.stream(asking('hi'), neverAborted)) if (event.type === 'text') break;
    await eventually(() => server.requests[0]?.aborted);
    // It did not wait for the end of an answer that it does not need.
    // Waits that tests of other files have left in this process begin their next part meanwhile (`giveUpAfter`).
    const own = timers.mock.calls.filter(([{ name }]) => name !== 'endPart');
    expect(own.map(([, ms]) => ms)).not.toContain(DRAIN_MS);
    timers.mockRestore();
  });

  it('that is slow gets everything', async () => {
    const text = 'abcdefghij'.repeat(800_000);
    server.enqueue([say(text, { chunks: 2000 })]);
    const { model } = modelWith();
    let said = '';
    let looks = 0;
    for await (const event of model.stream(asking('hi'), neverAborted)) {
      // Long enough for the connection to be paused.
      await eventually(() => (looks += 1) > 10);
      if (event.type === 'text') said += event.delta;
    }
    expect(said === text).toBe(true);
  });
});
