import { describe, expect, it } from '@jest/globals';
import type { Embeddings } from '@concierge/model/openai';
import type { TenantScope } from '@concierge/tenant';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { questionKinds, readLabelledNotes, type LabelledNotes } from '../retrieval/labelled-notes.ts';
import { otherNotes, type Phrases } from '../retrieval/other-notes.ts';
import { englishPhrases, germanPhrases } from '../retrieval/phrases.ts';
import { startRealEmbedder, readEverything, measureRecall, writeNotes } from '../retrieval/recall.ts';

const OTHER_NOTES = 3000;
const halves = ['seen', 'held out'] as const;
/** The model takes 13 ms for a text on a quiet machine, and a search has 256 embedded at most. */
const EMBEDDING_TIMEOUT_MS = 600_000;
const SEARCHES_MAX = 200;

interface Searched {
  readonly set: LabelledNotes;
  readonly open: (embedder?: Embeddings) => Promise<TenantScope>;
}

async function fill(parts: AsyncDisposableStack, file: string, phrases: Phrases): Promise<Searched> {
  const files = parts.use(await TestTenants.start());
  const scope = await files.scope();
  const set = await readLabelledNotes(file);
  await writeNotes(scope, [...set.notes, ...otherNotes(phrases, { count: OTHER_NOTES, seed: 1 })]);
  return { set, open: async (embedder) => files.over(files.index, { embedder }).open('acme') };
}

describe('among 3,000 other notes', () => {
  let parts: AsyncDisposableStack;
  setUpOnce((stack) => {
    parts = stack;
  });

  it(
    'English questions find their notes by words and meaning, and no kind of question finds fewer than by words alone',
    async () => {
      const { set, open } = await fill(parts, 'english.txt', englishPhrases);
      const [words, hybrid] = [await open(), await open(await startRealEmbedder(parts))];
      await readEverything(hybrid, SEARCHES_MAX);
      for (const half of halves) {
        const questions = set.questions.filter((question) => question.half === half);
        const [alone, both] = [await measureRecall(words, questions), await measureRecall(hybrid, questions)];
        expect(both.all).toBeGreaterThanOrEqual(0.95);
        for (const kind of questionKinds) expect(both[kind]).toBeGreaterThanOrEqual(alone[kind] ?? 1);
      }
    },
    EMBEDDING_TIMEOUT_MS,
  );

  it('German questions find their notes by words', async () => {
    const { set, open } = await fill(parts, 'german.txt', germanPhrases);
    const words = await open();
    await readEverything(words, SEARCHES_MAX);
    for (const half of halves) {
      const recall = await measureRecall(
        words,
        set.questions.filter((question) => question.half === half),
      );
      expect(recall.all).toBeGreaterThanOrEqual(0.9);
    }
  });
});

describe('the English set', () => {
  it('has 60 questions in each half, a third of them paraphrases that share no word with their note', async () => {
    const { notes, questions } = await readLabelledNotes('english.txt');
    expect(notes.length).toBeGreaterThanOrEqual(60);
    for (const half of halves) expect(questions.filter((question) => question.half === half).length).toBeGreaterThanOrEqual(60);
    const paraphrases = questions.filter(({ kind }) => kind === 'paraphrase');
    expect(paraphrases.length / questions.length).toBeGreaterThan(0.33);
    const listWords = (text: string): Set<string> => new Set(text.toLowerCase().match(/[a-z]+/gu));
    const textByName = new Map(notes.map(({ name, text }) => [name, text]));
    const shared = paraphrases.flatMap(({ text, note }) => [...listWords(text).intersection(listWords(textByName.get(note) ?? ''))]);
    // Words of grammar, which every second note has.
    const grammar =
      'a an and are at be by do does for from has have how i in is it its may must of on or our the to up what when where which who with not s';
    expect(shared.filter((word) => !grammar.split(' ').includes(word))).toEqual([]);
  });
});
