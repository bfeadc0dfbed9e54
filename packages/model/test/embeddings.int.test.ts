import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { cut, hang, raw, startScriptedModel, status, type Script, type ScriptedModel } from '@concierge/testing';
import { ProvidersFile, type CallMeter, type ModelUsage } from '@concierge/contract';
import { resolveProviders } from '../src/index.ts';
import { Embeddings, type EmbeddingsOptions, type FailedAttempt } from '../src/openai/index.ts';
import { API_KEY, neverAborted } from './provider-fixture.ts';

/** An answer that is no stream of a conversation. */
const answer = (body: unknown): Script => [status(200, { body })];
const vectors = (...embeddings: number[][]): Script => answer({ data: embeddings.map((embedding, index) => ({ index, embedding })) });

/** Collects what calls took. */
function meterInto(usage: ModelUsage[]): CallMeter {
  const settle = async (used: ModelUsage | undefined): Promise<void> => {
    if (used !== undefined) usage.push(used);
    await Promise.resolve();
  };
  return { reserve: async () => Promise.resolve({ settle }) };
}

describe('embeddings', () => {
  let server: ScriptedModel;
  let failures: FailedAttempt[];
  let usage: ModelUsage[];
  const opened: Embeddings[] = [];

  beforeEach(async () => {
    server = await startScriptedModel();
    failures = [];
    usage = [];
  });
  afterEach(async () => {
    for (const embeddings of opened.splice(0)) embeddings.close();
    await server.close();
  });

  function open(options: Partial<EmbeddingsOptions> = {}): Embeddings {
    const file = ProvidersFile.parse({
      default: 'p/m',
      providers: { p: { baseUrl: server.url, apiKeyEnv: 'NOT_SET' } },
      embeddings: { model: 'p/org/small', apiKey: API_KEY, price: { input: 0.5 } },
    });
    const { embeddings } = resolveProviders(file, () => undefined);
    if (embeddings === null) throw new Error('no embeddings');
    const made = new Embeddings({
      embeddings,
      limits: { backoffMs: 5, attemptMs: 60_000 },
      onFailedAttempt: (failure) => failures.push(failure),
      ...options,
    });
    opened.push(made);
    return made;
  }

  it('are asked of the provider of their model with their own key, in order, and counted', async () => {
    const embeddings = open();
    const [one, two] = await embeddings.embed(['blue lamp', 'green chair'], neverAborted, { meter: meterInto(usage) });
    expect(one?.length).toBe(two?.length);
    expect(one).not.toEqual(two);
    expect(server.embeddings.requests).toMatchObject([
      { model: 'org/small', inputs: ['blue lamp', 'green chair'], headers: { authorization: `Bearer ${API_KEY}` } },
    ]);
    expect(usage).toEqual([{ model: 'p/org/small', calls: 1, inputTokens: 6, outputTokens: 0, cachedInputTokens: 0, costUsd: 0.000003 }]);
    expect(embeddings.model).toBe('p/org/small');
  });

  it('of many texts are asked for in several requests, and none of none', async () => {
    const texts = Array.from({ length: 150 }, (_, index) => `text ${String(index)}`);
    const all = await open().embed(texts, neverAborted);
    expect(all).toHaveLength(150);
    expect(server.embeddings.requests.map(({ inputs }) => inputs.length)).toEqual([64, 64, 22]);
    expect(server.embeddings.inputs).toEqual(texts);
    expect(await open().embed([], neverAborted)).toEqual([]);
  });

  it('come in whatever order the provider sends them', async () => {
    server.embeddings.enqueue(
      answer({
        data: [
          { index: 1, embedding: [0, 1] },
          { index: 0, embedding: [1, 0] },
        ],
      }),
    );
    expect(await open().embed(['a', 'b'], neverAborted)).toEqual([Float32Array.of(1, 0), Float32Array.of(0, 1)]);
  });

  it.each<[string, Script]>([
    ['503', [status(503)]],
    ['429', [status(429, { headers: { 'retry-after-ms': '5' } })]],
    ['a cut connection', [cut()]],
    ['no JSON', [status(200, { body: '<html>' })]],
    ['another shape', answer({ data: 'none' })],
    ['too few', vectors([1, 0])],
    ['different lengths', vectors([1, 0], [1])],
    ['a vector of nothing', vectors([], [])],
  ])('are asked for once more after %s', async (_name, script) => {
    server.embeddings.enqueue(script);
    expect(await open().embed(['a', 'b'], neverAborted)).toHaveLength(2);
    expect(failures).toMatchObject([{ model: 'p/org/small', attempt: 1, waitMs: expect.any(Number) }]);
    expect(server.embeddings.requests).toHaveLength(2);
  });

  it('are given up after the second failure, at once where repeating does not help, and the key is not revealed', async () => {
    server.embeddings.enqueue([status(503)], [status(503)]);
    await expect(open().embed(['a'], neverAborted)).rejects.toMatchObject({ name: 'ModelError', kind: 'unavailable' });
    server.embeddings.enqueue([status(401, { body: { error: { message: `no such key: ${API_KEY}`, code: null } } })]);
    const error: unknown = await open()
      .embed(['a'], neverAborted)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ kind: 'rejected', status: 401, message: expect.stringContaining('[key]') });
    expect(JSON.stringify([String(error), failures])).not.toContain(API_KEY);
    expect(server.embeddings.requests).toHaveLength(3);
  });

  it('that change their length are refused: the model behind the name is another one', async () => {
    const embeddings = open({ limits: { attempts: 1 } });
    server.embeddings.enqueue(vectors([1, 0]), vectors([1, 0, 0]));
    await embeddings.embed(['a'], neverAborted);
    await expect(embeddings.embed(['b'], neverAborted)).rejects.toMatchObject({ message: expect.stringContaining('different lengths') });
  });

  it('are not waited for longer than the limit, nor than the caller wants', async () => {
    server.embeddings.enqueue([hang()]);
    await expect(open({ limits: { attempts: 1, attemptMs: 50 } }).embed(['a'], neverAborted)).rejects.toMatchObject({ kind: 'timeout' });
    const stop = new AbortController();
    server.embeddings.enqueue([raw(''), hang()]);
    const asked = open().embed(['a'], stop.signal);
    stop.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
  });
});
