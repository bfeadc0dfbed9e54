import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { TurnRecord } from '@concierge/contract';
import { indexBackends, stopIndexBackends, type IndexUnderTest } from '@concierge/testing';
import { toRemovedSession } from '../src/lists/rows.ts';
import type { TenantIndex } from '../src/tenant-index.ts';
import type { IndexStore } from '../src/open-index.ts';
import { at, contact, Files, session, sessionId, skill, turn } from './index-samples.ts';

afterAll(stopIndexBackends);

const none = { added: 0, changed: 0, removed: 0 };
const noDrift = { sessions: none, turns: none, usage: none, skills: none, contacts: none };

for (const backend of indexBackends) {
  (backend.available ? describe : describe.skip)(`rebuilding an index in ${backend.name}`, () => {
    let database: IndexUnderTest;
    let store: IndexStore;
    let index: TenantIndex;

    beforeEach(async () => {
      database = await backend.start();
      store = await database.open();
      index = store.forTenant('acme');
    });
    afterEach(async () => database[Symbol.asyncDispose]());

    async function answers(of: TenantIndex = index) {
      const sessions = await of.listSessions({ limit: 100 });
      const turns = await of.listTurns({ limit: 100 });
      const records = await Promise.all(turns.items.map(async ({ id }) => of.findTurn(id)));
      return { sessions, turns, records, usage: await of.usage({}), skills: await of.listSkills(), contacts: await of.findContacts('', 9) };
    }

    it('reports what differed, puts it right and then finds nothing', async () => {
      const files = new Files(
        session(1, { turns: [turn('t1')] }),
        session(2, { title: 'renamed', revision: 3, turns: [turn('t2', { attempts: 2 }), turn('t3', { models: [] })] }),
      );
      files.skillList.push(skill('booking'), { ...skill('pricing'), trigger: 'prices' });
      await index.putSession(session(2, { revision: 9, title: 'a revision of before the backup', turns: [turn('t2')] }));
      await index.putSession(session(3, { turns: [turn('t4')] }));
      await index.replaceSkills([skill('pricing'), skill('dropped')]);
      files.contactList.push(contact(1, 'ann', 'Ann'), contact(2, 'bob', 'Bob Ray'), contact(3, 'eve'));
      for (const known of [contact(2, 'bob', 'Bob'), contact(3, 'eve'), contact(4, 'dan', 'Dan')]) await index.putContact(known);

      const drift = {
        sessions: { added: 1, changed: 1, removed: 1 },
        turns: { added: 2, changed: 1, removed: 1 },
        usage: { added: 1, changed: 0, removed: 1 },
        skills: { added: 1, changed: 1, removed: 1 },
        contacts: { added: 1, changed: 1, removed: 1 },
      };
      const before = await answers();
      expect(await store.compare('acme', files)).toEqual(drift);
      expect(await answers()).toEqual(before);
      expect(await store.isFresh('acme')).toBe(true);
      expect(await store.rebuild('acme', files)).toEqual(drift);
      expect((await index.listSessions({ limit: 9 })).items.map(({ title }) => title)).toEqual(['renamed', 'Conversation 1']);
      expect((await index.findTurn('t2'))?.record.attempts).toBe(2);
      const named = await Promise.all(['ann', 'bob ray', 'eve', 'dan'].map(async (text) => index.findContacts(text, 9)));
      expect(named).toEqual([['ann'], ['bob'], ['eve'], []]);
      expect(await store.compare('acme', files)).toEqual(noDrift);
      expect(await store.rebuild('acme', files)).toEqual(noDrift);
    });

    it('finds nothing where a fresh record only names its fields in another order than its file', async () => {
      const { id, status, models, ...rest } = turn('t1');
      const counted = models.map(({ model, costUsd, ...usage }) => ({ costUsd, ...usage, model }));
      const fresh: TurnRecord = { models: counted, ...rest, status, id };
      await index.putSession(session(1, { turns: [fresh] }));
      const read = TurnRecord.parse(JSON.parse(JSON.stringify(fresh)));
      expect(JSON.stringify(read)).not.toBe(JSON.stringify(fresh));
      expect(await store.rebuild('acme', new Files(session(1, { turns: [read] })))).toEqual(noDrift);
    });

    it('answers the same after it was deleted and rebuilt', async () => {
      const gone = session(4, { turns: [turn('t9', { endedAt: at(24 * 3600) })] });
      const files = new Files(
        session(1, {
          turns: [turn('t1'), turn('t2', { acceptedAt: at(5), status: 'failed', error: { code: 'provider_error', message: 'a\0b' } })],
        }),
        session(2, { agent: 'cs', channel: 'channel_b', title: 'odd \uD800', turns: [turn('t3', { acceptedAt: at(7) })] }),
      );
      files.removals.push(toRemovedSession(gone, gone.turns, new Date()));
      files.skillList.push(skill('booking'));
      files.contactList.push(contact(1, 'ann', 'Ann'));
      await index.putContact(contact(1, 'ann', 'Ann'));
      for (const { session: each, turns } of files.held) await index.putSession({ ...each, turns });
      await index.putSession(gone);
      for (const removed of files.removals) await index.removeSession(removed);
      await index.replaceSkills(files.skillList);
      const before = await answers();
      expect(before.usage.length).toBe(3);

      await store.drop('acme');
      expect((await answers()).sessions.items).toEqual([]);
      expect(await answers(store.forTenant('acme', files))).toEqual(before);
      await index.putSession(gone);
      expect(await store.rebuild('acme', files)).toEqual(noDrift);
    });

    it('counts the last one of several removals of a session, however far apart they stand', async () => {
      const removed = (number: number, ...ids: string[]) =>
        toRemovedSession(
          session(number),
          ids.map((id) => turn(id)),
          new Date(),
        );
      const between = Array.from({ length: 300 }, (_, number) => removed(number + 2, `o${String(number)}`));
      const readTurns = async (...removals: ReturnType<typeof removed>[]): Promise<number[]> => {
        const files = new Files();
        files.removals.push(...removals);
        await store.rebuild('acme', files);
        return (await index.usage({})).map(({ turns }) => turns);
      };
      expect(await readTurns(removed(1, 't1'), removed(1, 't1', 't2'))).toEqual([2]);
      expect(await readTurns(removed(1, 't1'), ...between, removed(1, 't1', 't2', 't3'))).toEqual([303]);
    });

    it('is fresh until it was rebuilt, and again after it was dropped', async () => {
      await index.putSession(session(1));
      expect(await store.isFresh('acme')).toBe(true);
      await store.rebuild('acme', new Files());
      expect(await store.isFresh('acme')).toBe(false);
      expect(await store.isFresh('other')).toBe(true);
      await store.drop('acme');
      expect(await store.isFresh('acme')).toBe(true);
    });

    it('is filled once by the first reads, and not by writes', async () => {
      const files = new Files(session(1), session(2));
      let rebuilds = 0;
      files.meanwhile = async () => {
        rebuilds += 1;
        await Promise.resolve();
      };
      const own = store.forTenant('acme', files);
      files.held.push({ session: session(3), turns: [] });
      await own.putSession(session(3));
      expect(rebuilds).toBe(0);
      const lists = await Promise.all([own.listSessions({ limit: 9 }), own.listSessions({ limit: 9 }), own.listTurns({ limit: 9 })]);
      expect(lists[0].items.map(({ id }) => id)).toEqual([3, 2, 1].map((number) => sessionId(number)));
      expect((await own.listSessions({ limit: 9 })).items.length).toBe(3);
      expect(rebuilds).toBe(1);
    });

    it('keeps what is written while it runs', async () => {
      const files = new Files(session(1, { turns: [turn('t1')] }), session(2, { turns: [turn('t2')] }), session(3));
      for (const { session: each, turns } of files.held) await index.putSession({ ...each, turns });
      const gone = session(2, { turns: [turn('t2')] });
      const other = (await database.open()).forTenant('acme');
      files.meanwhile = async () => {
        const first = session(1, { revision: 2, title: 'went on', turns: [turn('t1'), turn('t5', { acceptedAt: at(9) })] });
        await other.putSession(first, { turnIds: ['t5'] });
        await other.putSession(session(8, { turns: [turn('t8')] }));
        await other.removeSession(toRemovedSession(gone, gone.turns, new Date()));
      };
      await store.rebuild('acme', files);
      expect((await index.listSessions({ limit: 9 })).items.map(({ title }) => title)).toEqual([
        'Conversation 8',
        'Conversation 3',
        'went on',
      ]);
      expect((await index.listTurns({ limit: 9 })).items.map(({ id }) => id)).toEqual(['t5', 't8', 't1']);
      expect((await index.usage({}))[0]?.turns).toBe(4);
    });

    it('keeps what was written of contacts while it ran, and brings back none that was removed', async () => {
      const files = new Files(session(1));
      files.contactList.push(contact(1, 'ann', 'Ann'), contact(2, 'bob', 'Bob'), contact(3, 'eve', 'Eve'));
      for (const known of files.contactList) await index.putContact(known);
      const other = (await database.open()).forTenant('acme');
      files.meanwhile = async () => {
        await other.putContact(contact(1, 'ann', 'Ann Lee'));
        await other.putContact(contact(4, 'dan', 'Dan'));
        await other.removeContacts([2, 3].map((number) => sessionId(number)));
        await other.putContact(contact(3, 'eve', 'Eve again'));
      };
      await store.rebuild('acme', files);
      const named = await Promise.all(['ann lee', 'dan', 'bob', 'eve again'].map(async (text) => index.findContacts(text, 9)));
      expect(named).toEqual([['ann'], ['dan'], [], ['eve']]);
    });

    it('leaves everything as it was when the files cannot be read', async () => {
      await store.rebuild('acme', new Files(session(1)));
      const files = new Files(session(2), session(3));
      files.meanwhile = async () => Promise.reject(new Error('no such disk'));
      await expect(store.rebuild('acme', files)).rejects.toMatchObject({ name: 'IndexSourceError', cause: { message: 'no such disk' } });
      expect((await index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(1)]);
    });

    it('believes a restored session file more than the note of its removal', async () => {
      const restored = session(1, { turns: [turn('t1')] });
      const files = new Files(restored);
      files.removals.push(toRemovedSession(restored, restored.turns, new Date()));
      await index.removeSession(toRemovedSession(restored, restored.turns, new Date()));
      await store.rebuild('acme', files);
      expect((await index.listSessions({ limit: 9 })).items.length).toBe(1);
      expect((await index.usage({}))[0]?.turns).toBe(1);
      await index.putSession({ ...restored, revision: 2, title: 'goes on' });
      expect((await index.listSessions({ limit: 9 })).items[0]?.title).toBe('goes on');
    });

    it('takes a note of a removal, or a turn, that stands in the files twice', async () => {
      const gone = session(1, { turns: [turn('t1')] });
      const files = new Files(session(2, { turns: [turn('t2'), turn('t2')] }));
      const removed = toRemovedSession(gone, gone.turns, new Date());
      const later = { ...removed, createdAt: at(60) };
      files.removals.push(removed, later, removed);
      await store.rebuild('acme', files);
      expect((await index.usage({}))[0]?.turns).toBe(3);
      await index.putSession({ ...gone, createdAt: at(60) });
      expect((await index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(2)]);
    });

    it('comes to the same when two processes rebuild at once', async () => {
      const many = Array.from({ length: 1050 }, (_, number) => session(number, { turns: [turn(`t${String(number)}`)] }));
      const [one, other] = [new Files(...many), new Files(...many)];
      const second = await database.open();
      await Promise.all([store.rebuild('acme', one), second.rebuild('acme', other)]);
      expect((await index.usage({}))[0]?.turns).toBe(1050);
      expect(await store.rebuild('acme', one)).toEqual(noDrift);
    });

    it('is not disturbed by a tenant that goes on writing, and does not disturb it', async () => {
      const many = Array.from({ length: 1050 }, (_, number) => session(number, { turns: [turn(`t${String(number)}`)] }));
      const files = new Files(...many.slice(0, 1000));
      await index.putSessions(many.slice(900).map((each) => ({ session: each })));
      const other = (await database.open()).forTenant('acme');
      const writing: Promise<void>[] = [];
      files.meanwhile = async () => {
        for (let number = 0; number < 200; number += 1) {
          const put = session(number, { revision: 2, title: 'newer', updatedAt: at(5000 + number), turns: [turn(`n${String(number)}`)] });
          writing.push(other.putSession(put));
        }
        await Promise.resolve();
      };
      const drift = await store.rebuild('acme', files);
      await Promise.all(writing);
      expect(drift.sessions.removed).toBe(50);
      const titles = (await index.listSessions({ limit: 200 })).items.map(({ title }) => title);
      expect(titles).toEqual(Array.from({ length: 200 }, () => 'newer'));
      expect((await index.usage({}))[0]?.turns).toBe(1200);
    });

    it('touches no other tenant', async () => {
      await store.forTenant('other').putSession(session(1, { turns: [turn('t1')] }));
      await store.rebuild('acme', new Files(session(2)));
      expect((await store.forTenant('other').listTurns({ limit: 9 })).items.length).toBe(1);
    });
  });
}
