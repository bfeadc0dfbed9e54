import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MemoryAnswer, TenantScope } from '@concierge/tenant';
import { questionKinds, type LabelledQuestion, type QuestionKind } from './labelled-notes.ts';
import type { WrittenNote } from './other-notes.ts';
import { ProvidersFile } from '@concierge/contract';
import { resolveProviders } from '@concierge/model';
import { Embeddings } from '@concierge/model/openai';
import { startRealEmbeddings } from '@concierge/testing';

const RECALL_AT = 5;

/** Shares of questions whose note is among the first five. */
export type Recall = Readonly<Partial<Record<QuestionKind | 'all', number>>>;

/** Writes notes as an agent or an import leaves them. */
export async function writeNotes(scope: TenantScope, notes: readonly WrittenNote[]): Promise<void> {
  await mkdir(join(scope.root, 'memory'), { recursive: true });
  for (const { name, text } of notes) await writeFile(join(scope.root, 'memory', `${name}.md`), text);
}

export async function askMemory({ memorySearch }: TenantScope, text: string): Promise<MemoryAnswer> {
  return memorySearch.search({ access: 'owner' }, { text, limit: RECALL_AT, kinds: ['note'], signal: AbortSignal.timeout(120_000) });
}

/** Searches until everything has been read and, with embeddings, embedded; how long each search took. */
export async function readEverything(scope: TenantScope, searchesMax: number): Promise<number[]> {
  const ms: number[] = [];
  while (ms.length < searchesMax) {
    const startedMs = performance.now();
    const { unread, unembedded } = await askMemory(scope, 'anything');
    ms.push(performance.now() - startedMs);
    if (unread.notes === 0 && unembedded === 0) return ms;
  }
  throw new Error(`after ${String(searchesMax)} searches something is still unread`);
}

export async function measureRecall(scope: TenantScope, questions: readonly LabelledQuestion[]): Promise<Recall> {
  const asked: { kind: QuestionKind; isFound: boolean }[] = [];
  for (const { kind, text, note } of questions) {
    const { hits } = await askMemory(scope, text);
    asked.push({ kind, isFound: hits.some(({ ref }) => ref === `memory/${note}.md`) });
  }
  const measureShare = (some: typeof asked): number => some.filter(({ isFound }) => isFound).length / some.length;
  const kinds = questionKinds.filter((kind) => asked.some((each) => each.kind === kind));
  const byKind = kinds.map((kind) => [kind, measureShare(asked.filter((each) => each.kind === kind))] as const);
  return { ...Object.fromEntries(byKind), all: measureShare(asked) };
}

const model = 'test/universal-sentence-encoder';

/** The product's own client of an embeddings model that runs beside it, offline. */
export async function startRealEmbedder(parts: AsyncDisposableStack): Promise<Embeddings> {
  const { url } = parts.use(await startRealEmbeddings());
  const file = ProvidersFile.parse({ default: model, providers: { test: { baseUrl: url, apiKey: 'none' } }, embeddings: { model } });
  const { embeddings } = resolveProviders(file, () => undefined);
  if (embeddings === null) throw new Error('there are no embeddings');
  const opened = new Embeddings({ embeddings });
  parts.defer(() => {
    opened.close();
  });
  return opened;
}
