import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import { SqliteBackend, storeOver } from '@concierge/index';
import { indexBackends, silentLog, stopIndexBackends } from '@concierge/testing';
import type { Searcher } from '../src/memory-search/memory-search.ts';
import { Tenants } from '../src/tenants.ts';
import { CountedEmbedder, day } from './memory-samples.ts';
import { temporaryFolder } from './support.ts';

const owner: Searcher = { access: 'owner' };

afterAll(stopIndexBackends);

(indexBackends.every(({ available }) => available) ? describe : describe.skip)('both databases', () => {
  it('give the same answers', async () => {
    const words = ['lamp', 'Lampe', 'refund', 'Erstattung', 'größe', 'size', 'доставка', '営業時間', 'the', 'und', 'unworn', 'shoes'];
    const questions = [
      'lamp',
      'lamps refund',
      'Grosse',
      'доставки',
      '営業',
      'the und',
      'shoos',
      'money back',
      'size of the shoes',
      'nothing',
    ];
    const answers: unknown[] = [];
    for (const backend of indexBackends) {
      await using database = await backend.start();
      await using folder = await temporaryFolder();
      const index = await database.open();
      const all = new Tenants({ dataDir: folder.path, index, keySecret: 'k'.repeat(40), log: silentLog, embedder: new CountedEmbedder() });
      const scope = await all.create('acme');
      for (let number = 0; number < 60; number += 1) {
        const said = Array.from({ length: 12 }, (_, place) => words[(number * 7 + place * place * (number + 3)) % words.length]).join(' ');
        await scope.files.writeText(`memory/n${String(number)}.md`, `# ${words[number % words.length] ?? ''}\n\n${said}.\n`);
        await utimes(join(scope.root, 'memory', `n${String(number)}.md`), new Date(day(number % 9)), new Date(day(number % 9)));
      }
      const signal = new AbortController().signal;
      const given = questions.map(async (text) => scope.memorySearch.search(owner, { text, limit: 50, kinds: ['note'], signal }));
      answers.push((await Promise.all(given)).map(({ hits, total }) => ({ total, refs: hits.map(({ ref }) => ref) })));
    }
    expect(answers[1]).toEqual(answers[0]);
  });
});

describe('vectors in SQLite', () => {
  it('are compared by sqlite-vec, or without it one by one, with the same result', async () => {
    await using folder = await temporaryFolder();
    const embedder = new CountedEmbedder();
    const answers: unknown[] = [];
    for (const vectorExtension of [true, false]) {
      const backend = new SqliteBackend({ folder: join(folder.path, 'index'), bootId: 'b', log: silentLog, vectorExtension });
      const index = storeOver(backend);
      const all = new Tenants({ dataDir: folder.path, index, keySecret: 'k'.repeat(40), log: silentLog, embedder });
      const scope = vectorExtension ? await all.create('acme') : await all.open('acme');
      for (let number = 0; vectorExtension && number < 30; number += 1) {
        await scope.files.writeText(
          `memory/n${String(number)}.md`,
          `Lamp ${String(number % 7)} and its refund of ${String(number)} euros.\n`,
        );
        await utimes(join(scope.root, 'memory', `n${String(number)}.md`), new Date(day(number)), new Date(day(number)));
      }
      expect(await backend.readVectors('acme', async (_db, canCompare) => Promise.resolve(canCompare))).toBe(vectorExtension);
      const signal = new AbortController().signal;
      answers.push(await scope.memorySearch.search(owner, { text: 'money for lamp 3', limit: 30, signal }));
      await index.close();
    }
    expect(answers[0]).toMatchObject({ meaning: 'used', unembedded: 0 });
    expect(answers[1]).toEqual(answers[0]);
    // What the second one found it had not embedded itself.
    expect(embedder.texts.filter((text) => text.startsWith('Lamp'))).toHaveLength(30);
  });
});
