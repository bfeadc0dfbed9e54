import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { Tenants, type TenantScope } from '@concierge/tenant';
import { temporaryDirectory } from '@concierge/testing';
import { percentile } from '../bench.ts';
import { questionKinds, readLabelledNotes, type LabelledNotes } from '../../retrieval/labelled-notes.ts';
import { otherNotes, type Phrases } from '../../retrieval/other-notes.ts';
import { englishPhrases, germanPhrases } from '../../retrieval/phrases.ts';
import { startRealEmbedder, askMemory, readEverything, measureRecall, writeNotes } from '../../retrieval/recall.ts';
import { absoluteRow, differenceRow, type Row } from '../row.ts';

const OTHER_NOTES = 3000;
const ROUNDS = 3;
const SEARCHES_MAX = 200;
const halves = ['seen', 'held out'] as const;

/**
 * 3,000 notes: how long the first searches read, how long a search takes, and what is found among them, with a real if
 * small embeddings model.
 */
export async function measureLargeMemory(): Promise<Row[]> {
  await using parts = new AsyncDisposableStack();
  const english = await fill(parts, 'english.txt', englishPhrases);
  const words = await new Tenants(english.options).open('shop');
  const reading = await readEverything(words, SEARCHES_MAX);
  const speed = await speedRows(words, english.set);
  const hybrid = await new Tenants({ ...english.options, embedder: await startRealEmbedder(parts) }).open('shop');
  await readEverything(hybrid, SEARCHES_MAX);
  const german = await fill(parts, 'german.txt', germanPhrases);
  const germanWords = await new Tenants(german.options).open('shop');
  await readEverything(germanWords, SEARCHES_MAX);
  return [
    absoluteRow({ measure: '3,000 notes, read for the first time', unit: 'ms', product: reading.reduce((sum, ms) => sum + ms, 0) }, null),
    absoluteRow(
      { measure: '3,000 notes, the longest of the searches that do so', unit: 'ms', product: Math.max(...reading) },
      { atMost: 2000 },
    ),
    ...speed,
    ...(await englishRows(words, hybrid, english.set)),
    ...(await germanRows(germanWords, german.set)),
  ];
}

async function fill(parts: AsyncDisposableStack, file: string, phrases: Phrases) {
  const folder = parts.use(await temporaryDirectory());
  const log = createLog({ service: 'bench', level: 'silent' });
  const index = await openIndex({ databaseUrl: undefined, dataDir: folder.path, log });
  parts.defer(async () => index.close());
  const options = { dataDir: folder.path, index, keySecret: 'b'.repeat(40), log };
  const set = await readLabelledNotes(file);
  await writeNotes(await new Tenants(options).create('shop'), [...set.notes, ...otherNotes(phrases, { count: OTHER_NOTES, seed: 1 })]);
  return { options, set };
}

async function speedRows(scope: TenantScope, { questions }: LabelledNotes): Promise<Row[]> {
  const ms: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { text } of questions) {
      const startedMs = performance.now();
      await askMemory(scope, text);
      ms.push(performance.now() - startedMs);
    }
  }
  const ascending = ms.toSorted((one, other) => one - other);
  return [
    absoluteRow({ measure: 'search of 3,000 notes by words, p50', unit: 'ms', product: percentile(ascending, 0.5) }, { atMost: 20 }),
    absoluteRow({ measure: 'search of 3,000 notes by words, p95', unit: 'ms', product: percentile(ascending, 0.95) }, null),
  ];
}

async function englishRows(words: TenantScope, hybrid: TenantScope, set: LabelledNotes): Promise<Row[]> {
  const rows: Row[] = [];
  for (const half of halves) {
    const questions = set.questions.filter((question) => question.half === half);
    const [alone, both] = [await measureRecall(words, questions), await measureRecall(hybrid, questions)];
    for (const kind of [...questionKinds, 'all'] as const) {
      const measure = `recall@5 among 3,000, English, ${half}, ${kind}`;
      const baseline = { name: 'words alone', value: 100 * (alone[kind] ?? 0) };
      rows.push(differenceRow({ measure, unit: '%', product: 100 * (both[kind] ?? 0) }, baseline, { atLeast: 0 }));
    }
  }
  return rows;
}

async function germanRows(words: TenantScope, set: LabelledNotes): Promise<Row[]> {
  const rows: Row[] = [];
  for (const half of halves) {
    const recall = await measureRecall(
      words,
      set.questions.filter((question) => question.half === half),
    );
    const measure = `recall@5 among 3,000, German, words alone, ${half}`;
    rows.push(absoluteRow({ measure, unit: '%', product: 100 * (recall.all ?? 0) }, { atLeast: 90 }));
  }
  return rows;
}
