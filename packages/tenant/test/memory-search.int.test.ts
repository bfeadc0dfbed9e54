import { rm, rename, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Embedder, Session, SessionMessage } from '@concierge/contract';
import type { IndexStore } from '@concierge/index';
import { indexBackends, silentLog, stopIndexBackends, type IndexUnderTest } from '@concierge/testing';
import type { Searcher, MemoryAnswer, MemoryQuery } from '../src/memory-search/memory-search.ts';
import { toContactFolder, deriveSessionId } from '../src/sessions/session-ids.ts';
import type { TenantScope } from '../src/tenant-scope.ts';
import { Tenants } from '../src/tenants.ts';
import { CountedEmbedder, day } from './memory-samples.ts';
import { newSession, temporaryFolder, type Folder } from './support.ts';

const owner: Searcher = { access: 'owner' };
const contact = (sender: string | null, sessionId = '0'.repeat(32), agent = 'cs'): Searcher => ({
  access: 'contact',
  agent,
  sender,
  sessionId,
});

function talk(
  id: string,
  parts: { agent?: string; sender?: string | null; said: readonly string[]; on?: number; channel?: Session['channel'] },
): Session {
  const at = day(parts.on ?? 1);
  const messages = parts.said.map((text, index): SessionMessage =>
    index % 2 === 0
      ? { id: `m${String(index)}`, turnId: 't', at, role: 'user', text, sent: text }
      : { id: `m${String(index)}`, turnId: 't', at, role: 'assistant', text },
  );
  return newSession(id, {
    agent: parts.agent ?? 'admin',
    sender: parts.sender ?? null,
    channel: parts.channel ?? 'web',
    title: parts.said[0] ?? '',
    messages,
    updatedAt: at,
  });
}

afterAll(stopIndexBackends);

for (const backend of indexBackends) {
  (backend.available ? describe : describe.skip)(`memory search over ${backend.name}`, () => {
    let database: IndexUnderTest;
    let store: IndexStore;
    let folder: Folder;
    let embedder: CountedEmbedder;
    let scope: TenantScope;

    beforeEach(async () => {
      database = await backend.start();
      store = await database.open();
      folder = await temporaryFolder();
      embedder = new CountedEmbedder();
      scope = await tenants({ embedder: undefined }).create('acme');
    });
    afterEach(async () => {
      await database[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    });
    const tenants = (options: { embedder: Embedder | undefined }): Tenants =>
      new Tenants({ dataDir: folder.path, index: store, keySecret: 'k'.repeat(40), log: silentLog, ...options });

    /** The same tenant as a worker with embeddings sees it. */
    const withMeaning = async (other: Embedder = embedder): Promise<TenantScope> => tenants({ embedder: other }).open('acme');

    async function note(name: string, text: string, on = 1): Promise<void> {
      await scope.files.writeText(`memory/${name}.md`, text);
      await utimes(join(scope.root, 'memory', `${name}.md`), new Date(day(on)), new Date(day(on)));
    }

    async function contactNote(sender: string, name: string, text: string): Promise<void> {
      await scope.memory.forContact(sender).write({ title: name, text });
    }

    async function publish(session: Session): Promise<void> {
      await scope.sessions.publish(session);
      await scope.index.putSession(session);
    }

    async function search(text: string, options: Partial<MemoryQuery> & { by?: Searcher; in?: TenantScope } = {}): Promise<MemoryAnswer> {
      const { by = owner, in: where = scope, ...query } = options;
      return where.memorySearch.search(by, { text, limit: 10, signal: new AbortController().signal, ...query });
    }

    const refs = async (text: string, options: Parameters<typeof search>[1] = {}): Promise<string[]> =>
      (await search(text, options)).hits.map(({ ref }) => ref);

    it('finds notes and conversations, the best first, and reports where they are from', async () => {
      await note('returns', '# Returns\n\nWithin thirty days.\n\n## Shoes\n\nShoes must be unworn.\n', 3);
      await note('opening', '# Opening hours\n\nNine to six.\n', 2);
      const id = 'a'.repeat(32);
      await publish(talk(id, { said: ['What about worn shoes?', 'We do not take them back.'], on: 4 }));
      const answer = await search('unworn shoes');
      expect(answer.hits[0]).toEqual({
        kind: 'note',
        ref: 'memory/returns.md',
        title: 'Returns',
        heading: 'Shoes',
        at: day(3),
        place: 7,
        snippet: 'Shoes must be unworn.',
      });
      expect(answer.hits[1]).toMatchObject({
        kind: 'session',
        ref: id,
        place: 1,
        at: day(4),
        snippet: expect.stringContaining('worn shoes'),
      });
      expect(answer).toMatchObject({ total: 2, meaning: 'off', unembedded: 0, unread: { notes: 0, sessions: 0 } });
      expect(await refs('shoes', { kinds: ['note'] })).toEqual(['memory/returns.md']);
      expect(await refs('shoes', { kinds: ['session'] })).toEqual([id]);
      expect(await refs('zebra')).toEqual([]);
    });

    it('finds words in other scripts, without accents, in other forms and with slips', async () => {
      await note('de', '# Öffnungszeiten\n\nWir öffnen um neun. Größe XL führen wir nicht.\n');
      await note('ja', '# 営業時間\n\n営業時間は九時から六時までです。\n');
      await note('ru', '# Доставка\n\nДоставка по городу бесплатная.\n');
      await note('ar', 'مواعيد العمل من التاسعة\n');
      expect(await refs('offnungszeiten')).toEqual(['memory/de.md']);
      expect(await refs('GROSSE xl')).toEqual(['memory/de.md']);
      expect(await refs('Öfnungszeiten')).toEqual(['memory/de.md']);
      expect(await refs('営業')).toEqual(['memory/ja.md']);
      expect(await refs('доставки')).toEqual(['memory/ru.md']);
      expect(await refs('مَواعيد')).toEqual(['memory/ar.md']);
    });

    it('takes whatever is asked for words, never for a query language', async () => {
      await note('odd', 'A note with "quotes", it\'s got OR and NOT and AND.\n');
      for (const text of ['"', "'", 'OR', 'NOT', 'a AND (', '* :', "x':* | 'y", 'near(a b)', '\0', '\uD800', '§nowner', '§s'])
        expect(Array.isArray(await refs(text))).toBe(true);
      expect(await refs('quotes" OR "x')).toEqual(['memory/odd.md']);
      expect(await refs('§nowner')).toEqual([]);
    });

    it('pages, two passages of one note at most', async () => {
      for (let index = 0; index < 6; index += 1) await note(`n${String(index)}`, `# Number ${String(index)}\n\ncommon thing\n`, index + 1);
      await note('long', `# Long\n\n${Array.from({ length: 9 }, (_, index) => `## ${String(index)}\n\ncommon thing\n`).join('\n')}`, 9);
      const first = await search('common', { limit: 4 });
      const second = await search('common', { limit: 4, offset: 4 });
      expect(first.total).toBe(8);
      expect([...first.hits, ...second.hits].map(({ ref }) => ref).toSorted()).toEqual([
        'memory/long.md',
        'memory/long.md',
        ...Array.from({ length: 6 }, (_, index) => `memory/n${String(index)}.md`),
      ]);
      expect(await refs('common', { offset: 8 })).toEqual([]);
    });

    it('sees a change, a new note and a removed one with the next search, however they were made', async () => {
      await note('price', 'The blue lamp costs forty euros.\n');
      expect(await refs('lamp')).toEqual(['memory/price.md']);
      for (let round = 0; round < 5; round += 1) {
        await writeFile(join(scope.root, 'memory', 'price.md'), `The blue sofa${String(round)} costs forty euros.\n`);
        expect(await refs(`sofa${String(round)}`)).toEqual(['memory/price.md']);
        expect(await refs('lamp')).toEqual([]);
      }
      await scope.memory.write({ text: 'The green chair is sold out.' });
      expect(await refs('chair')).toEqual(['MEMORY.md']);
      await rm(join(scope.root, 'memory', 'price.md'));
      expect(await refs('forty')).toEqual([]);
    });

    it('takes nothing for a note that begins with a dot, and forgets one that is moved to such a place', async () => {
      await note('price', 'The blue lamp costs forty euros.\n');
      await note('.trash/old', 'The red lamp costs thirty euros.\n');
      expect(await refs('lamp')).toEqual(['memory/price.md']);
      await writeFile(join(scope.root, 'memory', '.draft.md'), 'The green lamp costs fifty euros.\n');
      expect(await refs('lamp')).toEqual(['memory/price.md']);
      await rename(join(scope.root, 'memory', 'price.md'), join(scope.root, 'memory', '.trash', 'price.md'));
      expect(await refs('lamp')).toEqual([]);
      expect((await scope.memory.list()).map(({ path }) => path)).toEqual(['MEMORY.md']);
    });

    it('keeps neither text nor vector of a note that was forgotten', async () => {
      const where = await withMeaning();
      await note('gone', 'A lamp.\n');
      await search('lamp', { in: where });
      await scope.memory.forget('memory/gone.md');
      await scope.memorySearch.forgetNote(owner, 'memory/gone.md');
      expect([...(await scope.index.passages.noteStamps('owner')).keys()]).toEqual(['MEMORY.md']);
      embedder.take('lamp');
      await note('again', 'A lamp.\n');
      await search('lamp', { in: where });
      expect(embedder.take('lamp')).toEqual(['A lamp.']);
    });

    it('follows a conversation as it goes on, and forgets it when it is removed', async () => {
      const id = 'b'.repeat(32);
      const first = talk(id, { said: ['Do you sell tents?', 'Yes.'] });
      await publish(first);
      expect(await refs('tents')).toEqual([id]);
      const more = talk(id, { said: ['Do you sell tents?', 'Yes.', 'And canoes?', 'No.'] });
      await publish({ ...more, revision: 2 });
      expect((await search('canoes')).hits).toMatchObject([{ ref: id, place: 3 }]);
      await scope.removeSession(id);
      expect(await refs('tents canoes')).toEqual([]);
    });

    it('finds what compaction took out of a conversation, and its summary', async () => {
      const id = 'c'.repeat(32);
      const [old, answer, ...rest] = talk(id, { said: ['My cat is called Pixel', 'Noted', 'Hello again', 'Hello'] }).messages;
      if (old === undefined || answer === undefined) throw new Error('no messages');
      await scope.sessions.appendHistory(
        id,
        [old, answer].map((message) => ({ kind: 'message', message })),
      );
      const summary = { text: 'They talked about a veterinarian.', messages: 2, updatedAt: day(2) };
      await publish(newSession(id, { messages: rest, summary, title: 'Pets' }));
      expect((await search('cat called')).hits).toMatchObject([{ ref: id, place: 1 }]);
      expect((await search('veterinarian')).hits).toMatchObject([{ ref: id, heading: 'Summary' }]);
    });

    it('finds nothing of one contact for another, nor for a stranger, nor the owner’s notes for any of them', async () => {
      await note('secret', 'canary of the owner\n');
      await contactNote('anna', 'Anna', 'canary of anna');
      await contactNote('ben', 'Ben', 'canary of ben');
      await contactNote(`anonymous\u001f${'9'.repeat(32)}`, 'Nobody', 'canary of a stranger');
      const annas = deriveSessionId('cs', 'web', 'anna');
      const annasPhone = deriveSessionId('cs', 'channel_a', 'anna');
      const sales = deriveSessionId('sales', 'web', 'anna');
      await publish(talk(annas, { agent: 'cs', sender: 'anna', said: ['canary in the web', 'yes'] }));
      await publish(talk(annasPhone, { agent: 'cs', sender: 'anna', channel: 'channel_a', said: ['canary on the phone', 'yes'] }));
      await publish(talk(sales, { agent: 'sales', sender: 'anna', said: ['canary with sales', 'yes'] }));
      await publish(talk(deriveSessionId('cs', 'web', 'ben'), { agent: 'cs', sender: 'ben', said: ['canary of ben', 'yes'] }));
      await publish(talk('8'.repeat(32), { agent: 'cs', said: ['canary of nobody', 'yes'] }));
      await publish(talk('7'.repeat(32), { said: ['canary of the admin', 'yes'] }));
      const found = async (by: Searcher, where?: TenantScope): Promise<string[]> =>
        (await search('canary', { by, limit: 50, ...(where && { in: where }) })).hits
          .map(({ ref, snippet }) => `${ref} ${snippet}`)
          .toSorted();
      const all = async (where?: TenantScope): Promise<string[][]> => [
        await found(contact('anna'), where),
        await found(contact('ben'), where),
        await found(contact(null, '8'.repeat(32)), where),
        await found(contact(null, '6'.repeat(32)), where),
        await found(contact('eve'), where),
      ];
      const expected = [
        [
          `${annas} user: canary in the web assistant: yes`,
          `${annasPhone} user: canary on the phone assistant: yes`,
          expect.stringContaining('canary of anna'),
        ].toSorted((one, other) => String(one).localeCompare(String(other))),
        [expect.stringContaining('canary of ben'), expect.stringContaining('canary of ben')],
        [expect.stringContaining('canary of nobody')],
        [],
        [],
      ];
      const [anna = [], ...others] = await all();
      expect(anna).toHaveLength(3);
      expect(anna).toEqual(expect.arrayContaining([...(expected[0] ?? [])]));
      expect(others).toEqual(expected.slice(1));
      // The owner has read everything meanwhile, and vectors are there: still no contact sees more.
      const meaning = await withMeaning();
      const owners = await found(owner, meaning);
      expect(owners).toHaveLength(7);
      expect(owners.join('\n')).toContain('canary of the owner');
      expect(owners.join('\n')).not.toContain('canary of anna');
      const [annaNow, ...othersNow] = await all(meaning);
      expect(annaNow).toEqual(anna);
      expect(othersNow).toEqual(others);
    });

    it('has no row of a contact under another name than the contact’s', async () => {
      await contactNote('anna', 'Anna', 'canary of anna');
      await search('canary', { by: contact('anna') });
      expect(await scope.index.passages.noteOwners()).toEqual([toContactFolder('anna')]);
    });

    it('finds by meaning what shares no word with the question', async () => {
      await note('erstattung', 'Die Erstattung dauert fünf Tage.\n');
      await note('other', 'Our cellar is dry and cool.\n');
      expect(await refs('When do I get my money?')).toEqual([]);
      const answer = await search('When do I get my money?', { in: await withMeaning() });
      expect(answer).toMatchObject({ meaning: 'used', hits: [{ ref: 'memory/erstattung.md' }] });
    });

    it('embeds each passage once: not again for a search, a rename, or a change elsewhere in the note', async () => {
      const where = await withMeaning();
      const ask = async (): Promise<string[]> => {
        await search('refund', { in: where });
        return embedder.take('refund');
      };
      await scope.files.writeText('memory/a.md', '# A\n\n## One\n\nfirst\n\n## Two\n\nsecond\n');
      expect((await ask()).filter((text) => text.startsWith('A\n')).toSorted()).toEqual(['A\nOne\nfirst', 'A\nTwo\nsecond']);
      expect(await ask()).toEqual([]);
      await rename(join(scope.root, 'memory', 'a.md'), join(scope.root, 'memory', 'b.md'));
      expect(await ask()).toEqual([]);
      await scope.files.writeText('memory/b.md', '# A\n\n## Zero\n\nnothing\n\n## One\n\nfirst\n\n## Two\n\nsecond, changed\n');
      expect((await ask()).toSorted()).toEqual(['A\nTwo\nsecond, changed', 'A\nZero\nnothing']);
      // The vector of what is gone is gone: repeated, it is embedded again.
      await scope.files.writeText('memory/b.md', '# A\n\n## One\n\nfirst\n');
      expect(await ask()).toEqual([]);
      await scope.files.writeText('memory/b.md', '# A\n\n## One\n\nfirst\n\n## Zero\n\nnothing\n');
      expect(await ask()).toEqual(['A\nZero\nnothing']);
      await ask();
      const newer = new CountedEmbedder('test/newer');
      await search('refund', { in: await withMeaning(newer) });
      expect(newer.take('refund').length).toBeGreaterThan(1);
    });

    it('finds by words when the provider is down, reports it, and makes up for it', async () => {
      await note('refunds', 'A refund takes five days.\n');
      const where = await withMeaning();
      embedder.isDown = true;
      expect(await search('refund', { in: where })).toMatchObject({ meaning: 'failed', hits: [{ ref: 'memory/refunds.md' }] });
      embedder.isDown = false;
      expect(await search('refund', { in: where })).toMatchObject({ meaning: 'used', unembedded: 0 });
    });

    it('is stopped by its signal', async () => {
      await expect(search('x', { signal: AbortSignal.abort(new Error('cancelled')) })).rejects.toThrow('cancelled');
    });

    it('answers the same after the index was deleted, and after a rebuild', async () => {
      const where = await withMeaning();
      for (let index = 0; index < 12; index += 1)
        await note(`n${String(index)}`, `# Topic ${String(index)}\n\nA refund of lamp ${String(index % 3)}.\n`, index + 1);
      for (let index = 0; index < 5; index += 1) {
        await publish(talk(String(index).repeat(32), { said: [`Lamp ${String(index)}?`, 'A refund, yes.'], on: index + 1 }));
      }
      await contactNote('anna', 'Lamp', 'Anna likes the lamp');
      const answers = async (): Promise<unknown> =>
        Promise.all(
          ['refund lamp 1', 'money', 'lmap', 'topic 7'].flatMap((text) => [
            search(text, { in: where }),
            search(text, { by: contact('anna') }),
          ]),
        );
      const before = await answers();
      await store.drop('acme');
      expect(await answers()).toEqual(before);
      expect((await scope.reindex()).memory).toEqual({ added: 0, changed: 0, removed: 0 });
      expect(await answers()).toEqual(before);
    });

    it('reports in a reindex what was thought current and was not, and puts it right', async () => {
      await note('lamp', 'A lamp.\n');
      expect(await refs('lamp')).toEqual(['memory/lamp.md']);
      const entry = (await scope.memory.list()).find(({ path }) => path === 'memory/lamp.md');
      const source = { kind: 'note', owner: 'owner', ref: 'memory/lamp.md' } as const;
      const stamp = (await scope.index.passages.noteStamps('owner')).get('memory/lamp.md') ?? '';
      expect(stamp).toContain(String(entry?.size));
      const wrong = { title: '', heading: '', text: 'A canoe.', place: 1, atMs: 0 };
      await scope.index.passages.put(source, { stamp, passages: [wrong] });
      expect(await refs('canoe')).toEqual(['memory/lamp.md']);
      expect((await scope.compareIndex()).memory).toEqual({ added: 1, changed: 0, removed: 1 });
      expect(await refs('canoe')).toEqual(['memory/lamp.md']);
      expect((await scope.reindex()).memory).toEqual({ added: 1, changed: 0, removed: 1 });
      expect((await scope.compareIndex()).memory).toEqual({ added: 0, changed: 0, removed: 0 });
      expect(await refs('canoe')).toEqual([]);
      expect(await refs('lamp')).toEqual(['memory/lamp.md']);
    });

    it('reads a bounded number of conversations per search, the latest first, and reports what is left', async () => {
      const puts = Array.from({ length: 210 }, (_, index) =>
        talk(index.toString(16).padStart(32, '0'), { said: [`pebble ${String(index)}`, 'ok'], on: 1 + Math.floor(index / 10) }),
      );
      for (const session of puts) await scope.sessions.publish(session);
      await scope.index.putSessions(puts.map((session) => ({ session })));
      const first = await search('pebble', { limit: 1 });
      expect(first.unread).toEqual({ notes: 0, sessions: 10 });
      expect(await refs('pebble 3')).toEqual(expect.arrayContaining(['3'.padStart(32, '0')]));
      expect((await search('pebble', { limit: 1 })).unread).toEqual({ notes: 0, sessions: 0 });
    });

    it('comes to one answer when many search at once', async () => {
      const where = await withMeaning();
      for (let index = 0; index < 20; index += 1) await note(`n${String(index)}`, `# Topic ${String(index)}\n\nA refund.\n`, index + 1);
      const others = tenants({ embedder });
      const answers = await Promise.all(
        Array.from({ length: 8 }, async (_, index) => search('refund', { in: index % 2 === 0 ? where : await others.open('acme') })),
      );
      const last = await search('refund', { in: where });
      expect(last.total).toBe(20);
      for (const answer of answers) expect(answer.hits).toEqual(last.hits);
    });

    it('leaves out what is no text, and comes back to it when it is', async () => {
      await writeFile(join(scope.root, 'MEMORY.md'), Buffer.from([0xff, 0xfe, 0x00]));
      expect(await refs('lamp')).toEqual([]);
      await writeFile(join(scope.root, 'MEMORY.md'), 'a lamp');
      expect(await refs('lamp')).toEqual(['MEMORY.md']);
    });
  });
}
