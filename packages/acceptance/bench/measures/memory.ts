import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { resolveProviders } from '@concierge/model';
import { Embeddings } from '@concierge/model/openai';
import { Tenants, type MemoryAnswer, type TenantScope } from '@concierge/tenant';
import { startScriptedModel, temporaryDirectory } from '@concierge/testing';
import { ProvidersFile } from '@concierge/contract';
import { percentile } from '../bench.ts';
import { readEmbeddingsConfig } from '../config.ts';
import { fillShop, questions, type LabelledQuestion, type QuestionKind, shopSynonyms } from '../memory/corpus.ts';
import { absoluteRow, differenceRow, type Row } from '../row.ts';

const LOOKED_AT = 10;
const RECALL_AT = 5;
const ROUNDS = 3;

/** Place of the first right answer, from 1; null where there is none among those looked at. */
type Place = number | null;

interface Measured {
  readonly places: readonly Place[];
  readonly ms: readonly number[];
}

/**
 * Measures how often the right note is among the first five results, for a labelled set of questions over a shop's
 * memory, by words alone and with vectors.
 */
export async function measureMemory(): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const folder = parts.use(await temporaryDirectory());
  const log = createLog({ service: 'bench', level: 'silent' });
  const index = await openIndex({ databaseUrl: undefined, dataDir: folder.path, log });
  parts.defer(async () => index.close());
  const embedder = await embeddingsToUse(parts);
  const shop = { dataDir: folder.path, index, keySecret: 'b'.repeat(40), log };
  const scope = await new Tenants(shop).create('shop');
  const titles = await fillShop(scope);
  const words = await measure(scope, titles);
  const hybrid = await measure(await new Tenants({ ...shop, embedder }).open('shop'), titles);
  return [...qualityRows(words, hybrid), ...speedRows(words, hybrid)];
}

/** A real model where the environment names one; else the stand-in, and the output names it. */
async function embeddingsToUse(parts: AsyncDisposableStack): Promise<Embeddings> {
  const real = readEmbeddingsConfig();
  const standIn = real === undefined ? await startScriptedModel({ synonyms: shopSynonyms }) : undefined;
  if (standIn !== undefined) parts.defer(async () => standIn.close());
  process.stdout.write(
    real === undefined
      ? 'memory: vectors are the stand-in’s (hashed words and a list of synonyms written for this shop): they show that meaning reaches the ranking, not what a model finds. BENCH_EMBEDDINGS_URL, _MODEL and _KEY measure a real one.\n'
      : `memory: vectors are those of ${real.model}\n`,
  );
  const provider = { baseUrl: real?.url ?? standIn?.url, ...(real?.key !== undefined && { apiKey: real.key }) };
  const model = `bench/${real?.model ?? 'stand-in'}`;
  const file = ProvidersFile.parse({ default: model, providers: { bench: provider }, embeddings: { model } });
  const { embeddings } = resolveProviders(file, () => undefined);
  if (embeddings === null) throw new Error('the embeddings of the environment cannot be used');
  const opened = new Embeddings({ embeddings });
  parts.defer(() => opened.close());
  return opened;
}

async function measure(scope: TenantScope, titles: ReadonlyMap<string, string>): Promise<Measured> {
  const ask = async ({ text }: LabelledQuestion): Promise<MemoryAnswer> =>
    scope.memorySearch.search({ access: 'owner' }, { text, limit: LOOKED_AT, signal: AbortSignal.timeout(60_000) });
  // The first one reads and embeds everything.
  for (const question of questions.slice(0, 1)) await ask(question);
  const places: Place[] = [];
  const ms: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const question of questions) {
      const startedMs = performance.now();
      const answer = await ask(question);
      ms.push(performance.now() - startedMs);
      if (answer.meaning === 'failed') throw new Error('the embeddings could not be had');
      if (round === 0) places.push(findRank(answer, question, titles));
    }
  }
  return { places, ms: ms.toSorted((one, other) => one - other) };
}

function findRank({ hits }: MemoryAnswer, { expects }: LabelledQuestion, titles: ReadonlyMap<string, string>): Place {
  const place = hits.findIndex(({ ref }) => expects.includes(titles.get(ref) ?? ref));
  return place === -1 ? null : place + 1;
}

const kinds: readonly (QuestionKind | 'all')[] = ['plain', 'typo', 'paraphrase', 'language', 'all'];

function qualityRows(words: Measured, hybrid: Measured): Row[] {
  const rows = kinds.map((kind) => {
    const [alone, both] = [computeRecall(words, kind), computeRecall(hybrid, kind)];
    const count = kind === 'all' ? questions.length : questions.filter((question) => question.kind === kind).length;
    return differenceRow(
      { measure: `memory, recall@${String(RECALL_AT)}, ${kind} (${String(count)} questions)`, unit: '%', product: both },
      { name: 'words alone', value: alone },
      null,
    );
  });
  const rank = { measure: 'memory, mean reciprocal rank, all', unit: '1/rank', product: reciprocalRank(hybrid) };
  return [...rows, differenceRow(rank, { name: 'words alone', value: reciprocalRank(words) }, null)];
}

function speedRows(words: Measured, hybrid: Measured): Row[] {
  return [
    absoluteRow({ measure: 'memory search, words alone, p50', unit: 'ms', product: percentile(words.ms, 0.5) }, null),
    absoluteRow(
      { measure: 'memory search, hybrid with the request for the question’s vector, p50', unit: 'ms', product: percentile(hybrid.ms, 0.5) },
      null,
    ),
  ];
}

function computeRecall({ places }: Measured, kind: QuestionKind | 'all'): number {
  const asked = [...places.entries()].filter(([place]) => kind === 'all' || questions[place]?.kind === kind);
  const found = asked.filter(([, place]) => place !== null && place <= RECALL_AT);
  return (100 * found.length) / asked.length;
}

function reciprocalRank({ places }: Measured): number {
  return places.reduce((sum: number, place) => sum + (place === null ? 0 : 1 / place), 0) / places.length;
}
