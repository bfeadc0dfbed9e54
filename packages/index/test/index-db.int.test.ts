import { afterAll, afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SessionOrigin, TurnView } from '@concierge/contract';
import { indexBackends, stopIndexBackends, type IndexUnderTest } from '@concierge/testing';
import { toRemovedSession } from '../src/lists/rows.ts';
import type { TenantIndex } from '../src/tenant-index.ts';
import type { IndexStore } from '../src/open-index.ts';
import type { IndexedSession, SessionsQuery, TurnsQuery } from '../src/types.ts';
import { allPages, at, contact, session, sessionId, skill, turn } from './index-samples.ts';

afterAll(stopIndexBackends);

for (const backend of indexBackends) {
  (backend.available ? describe : describe.skip)(`an index in ${backend.name}`, () => {
    let database: IndexUnderTest;
    let store: IndexStore;
    let index: TenantIndex;

    beforeEach(async () => {
      database = await backend.start();
      store = await database.open();
      index = store.forTenant('acme');
    });
    afterEach(async () => database[Symbol.asyncDispose]());

    async function allSessions(limit: number, agent?: string): Promise<IndexedSession[]> {
      return allPages(async (cursor) => index.listSessions({ limit, agent, cursor }));
    }

    it('lists a session that was put, as its file has it', async () => {
      await index.putSession(session(1, { title: 'Holidays', messageCount: 4, agent: 'cs', channel: 'channel_a', origin: 'channel' }));
      expect((await index.listSessions({ limit: 25 })).items).toEqual([
        {
          id: sessionId(1),
          updatedAt: at(1),
          agent: 'cs',
          channel: 'channel_a',
          origin: 'channel',
          title: 'Holidays',
          messageCount: 4,
          sender: null,
          lastMessage: null,
          hasFailed: false,
        },
      ]);
    });

    it('finds sessions by sender, channel, words, last speaker and failure', async () => {
      const said = (number: number, role: 'user' | 'assistant', text: string) =>
        role === 'user'
          ? { id: `m${String(number)}`, turnId: 't1', at: at(number), role, text, sent: text }
          : { id: `m${String(number)}`, turnId: 't1', at: at(number), role, text };
      await index.putSessions([
        { session: session(1, { sender: '4915', channel: 'channel_a', messages: [said(1, 'user', 'Grüße: 100 % Wolle?')] }) },
        { session: session(2, { sender: 'ann', messages: [said(1, 'user', 'Hi'), said(2, 'assistant', `Yes_${'x'.repeat(300)}`)] }) },
        { session: session(3, { title: 'Broken', turns: [turn('t3', { status: 'failed' })] }) },
      ]);
      const find = async (query: Omit<SessionsQuery, 'limit'>): Promise<number[]> =>
        (await index.listSessions({ limit: 9, ...query })).items
          .map(({ id }) => Number.parseInt(id, 16))
          .toSorted((one, other) => one - other);
      await index.putContact(contact(50, 'ann', 'Zoë_Lee'));
      await index.putContact(contact(51, 'none who has written', 'Zoë'));
      const words = (text: string, ids: string[] = []) => ({ words: { text, ids } });
      expect(await find({ sender: '4915' })).toEqual([1]);
      expect(await find({ channel: 'channel_a' })).toEqual([1]);
      expect(await find(words('GRÜSSE'.replace('SS', 'ß')))).toEqual([1]);
      expect(await find(words('100 %'))).toEqual([1]);
      expect(await find(words('%'))).toEqual([1]);
      expect(await find(words('yes_x'))).toEqual([2]);
      expect(await find(words('ZOË_'))).toEqual([2]);
      expect(await find(words('zoë lee'))).toEqual([]);
      expect(await find(words('nothing like it', [sessionId(3)]))).toEqual([3]);
      expect(await find({ lastFrom: ['contact'] })).toEqual([1]);
      expect(await find({ hasFailed: true })).toEqual([3]);
      expect(await find({ ids: [{ only: [sessionId(2), sessionId(3)] }] })).toEqual([2, 3]);
      expect(await find({ ids: [{ without: [sessionId(2)] }] })).toEqual([1, 3]);
      expect(await find({ ids: [{ only: [] }] })).toEqual([]);
      const [second] = (await index.listSessions({ limit: 1, sender: 'ann' })).items;
      expect(second?.lastMessage).toMatchObject({ from: 'agent', at: at(2) });
      expect(second?.lastMessage?.text).toHaveLength(200);
    });

    it('finds turns by agent, channel, origin and error', async () => {
      const error = { code: 'provider_error', message: 'It says "error":{"code":"internal_error"}' } as const;
      await index.putSessions([
        { session: session(1, { agent: 'cs', turns: [turn('t1', { origin: 'webhook' }), turn('t2', { status: 'failed', error })] }) },
        { session: session(2, { channel: 'channel_a', turns: [turn('t3')] }) },
      ]);
      const find = async (query: object): Promise<string[]> => (await index.listTurns({ limit: 9, ...query })).items.map(({ id }) => id);
      expect(await find({ agent: 'cs' })).toEqual(['t2', 't1']);
      expect(await find({ channel: 'channel_a' })).toEqual(['t3']);
      expect(await find({ origin: 'webhook' })).toEqual(['t1']);
      expect(await find({ code: 'provider_error' })).toEqual(['t2']);
      expect(await find({ code: 'internal_error' })).toEqual([]);
      expect((await index.listTurns({ limit: 9, channel: 'channel_a' })).items[0]?.costUsd).toBeCloseTo(0.0003);
    });

    it('lists the sessions of some origins, page by page', async () => {
      const origins = ['user', 'channel', 'heartbeat', 'subagent', 'user', 'heartbeat'] as const;
      await index.putSessions(origins.map((origin, number) => ({ session: session(number, { origin }) })));
      const listed = async (origin?: readonly SessionOrigin[]) =>
        (await allPages<IndexedSession>(async (cursor) => index.listSessions({ limit: 2, origin, cursor }))).map((item) => item.origin);
      expect(await listed(['user', 'channel'])).toEqual(['user', 'channel', 'user']);
      expect(await listed(['schedule'])).toEqual([]);
      expect(await listed()).toEqual(origins.toReversed());
    });

    it('does not let an older revision overwrite a newer one, but takes the turn it brings', async () => {
      const [first, second] = [turn('t1'), turn('t2', { acceptedAt: at(9) })];
      await index.putSession(session(1, { revision: 2, title: 'newer', turns: [first, second] }), { turnIds: ['t2'] });
      await index.putSession(session(1, { revision: 1, title: 'older', turns: [first] }), { turnIds: ['t1'] });
      expect((await index.listSessions({ limit: 25 })).items[0]?.title).toBe('newer');
      expect((await index.listTurns({ limit: 25 })).items.map(({ id }) => id)).toEqual(['t2', 't1']);
    });

    it('comes to the same when a session is put again', async () => {
      const put = session(1, { turns: [turn('t1'), turn('t2', { acceptedAt: at(4) })] });
      await index.putSession(put);
      const before = [await index.listSessions({ limit: 9 }), await index.listTurns({ limit: 9 }), await index.usage({})];
      await index.putSession(put);
      await index.putSessions([{ session: put }, { session: put, turnIds: ['t2', 't1', 'none'] }]);
      expect([await index.listSessions({ limit: 9 }), await index.listTurns({ limit: 9 }), await index.usage({})]).toEqual(before);
    });

    it('writes only the turns that are named', async () => {
      await index.putSession(session(1, { turns: [turn('t1'), turn('t2')] }), { turnIds: ['t2'] });
      expect(await index.findTurn('t1')).toBeUndefined();
      expect((await index.findTurn('t2'))?.record.id).toBe('t2');
    });

    it('takes a group in which one session stands several times', async () => {
      const puts = [3, 1, 2].map((revision) => ({
        session: session(1, {
          revision,
          title: `revision ${String(revision)}`,
          turns: [turn(`t${String(revision)}`, { acceptedAt: at(revision) })],
        }),
      }));
      await index.putSessions(puts);
      expect((await index.listSessions({ limit: 9 })).items.map(({ title }) => title)).toEqual(['revision 3']);
      expect((await index.listTurns({ limit: 9 })).items.map(({ id }) => id)).toEqual(['t3', 't2', 't1']);
    });

    it('takes groups of any size', async () => {
      const numbers = Array.from({ length: 77 }, (_, number) => number);
      await index.putSessions(numbers.map((number) => ({ session: session(number, { turns: [turn(`t${String(number)}`)] }) })));
      expect((await allSessions(100)).length).toBe(77);
      expect((await index.usage({}))[0]?.turns).toBe(77);
    });

    it('pages through sessions newest first, each once, also where times are equal', async () => {
      const numbers = Array.from({ length: 53 }, (_, number) => number);
      const puts = numbers.map((number) => ({ session: session(number, { updatedAt: at(Math.floor(number / 10)) }) }));
      await index.putSessions(puts);
      const expected = numbers.toReversed().map((number) => sessionId(number));
      for (const limit of [1, 7, 52, 53, 54]) expect((await allSessions(limit)).map(({ id }) => id)).toEqual(expected);
    });

    it('reports that there is no next page when the last one is full', async () => {
      await index.putSessions([{ session: session(1) }, { session: session(2) }]);
      expect((await index.listSessions({ limit: 2 })).nextCursor).toBeNull();
    });

    it('lists the sessions of one agent', async () => {
      await index.putSessions([1, 2, 3, 4].map((number) => ({ session: session(number, { agent: number % 2 === 0 ? 'cs' : 'admin' }) })));
      expect((await allSessions(1, 'cs')).map(({ id }) => id)).toEqual([sessionId(4), sessionId(2)]);
      expect(await allSessions(1, 'sales')).toEqual([]);
    });

    it('refuses a cursor that it did not give', async () => {
      await index.putSessions([1, 2].map((number) => ({ session: session(number, { turns: [turn(`t${String(number)}`)] }) })));
      const { nextCursor } = await index.listTurns({ limit: 1 });
      const forged = Buffer.from(JSON.stringify(['sessions', 1, 'a\0b'])).toString('base64url');
      for (const cursor of ['', 'x', 'bnVsbA', `${String(nextCursor)}=`, String(nextCursor), forged]) {
        await expect(index.listSessions({ limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid_request' });
      }
      await expect(index.listTurns({ limit: 1, cursor: 'x' })).rejects.toMatchObject({ code: 'invalid_request' });
    });

    it('lists ended turns by state, last accepted first, without their steps', async () => {
      const failed = turn('t2', {
        status: 'failed',
        acceptedAt: at(2),
        error: { code: 'provider_error', message: 'no' },
        finishReason: null,
      });
      const turns = [
        turn('t1', { acceptedAt: at(1) }),
        failed,
        turn('t3', { acceptedAt: at(3) }),
        turn('t4', { acceptedAt: at(4), status: 'cancelled' }),
      ];
      await index.putSession(session(1, { turns }));
      const { steps: _steps, models: _models, requestHash: _hash, keyId: _key, ...shown } = failed;
      expect((await index.listTurns({ limit: 9, status: 'failed' })).items).toEqual([
        { ...shown, contact_id: sessionId(1), agent: 'admin', channel: 'web', costUsd: 0.0003 },
      ]);
      const period = { fromMs: Date.parse(at(2)), toMs: Date.parse(at(3)), limit: 1 };
      const found = { items: [{ sessionId: sessionId(1), agent: 'admin', channel: 'web', record: failed }], nextCursor: null };
      expect(await index.listFailedTurns(period)).toEqual(found);
      expect((await index.listFailedTurns({ ...period, toMs: period.fromMs })).items).toEqual([]);
      expect((await index.listFailedTurns({ ...period, fromMs: period.fromMs + 1 })).items).toEqual([]);
      const pages = await allPages<TurnView>(async (cursor) => index.listTurns({ limit: 1, cursor }));
      expect(pages.map(({ id }) => id)).toEqual(['t4', 't3', 't2', 't1']);
      const done = await allPages<TurnView>(async (cursor) => index.listTurns({ limit: 1, status: 'done', cursor }));
      expect(done.map(({ id }) => id)).toEqual(['t3', 't1']);
      expect((await index.listTurns({ limit: 9, status: 'running' })).items).toEqual([]);
    });

    it('lists the turns that failed with a code, and the turn or the turns of the session with an id', async () => {
      const failed = (id: string, code: 'provider_error' | 'turn_crashed', second: number) =>
        turn(id, { acceptedAt: at(second), status: 'failed', finishReason: null, error: { code, message: '"error":{"code":"odd\0' } });
      await index.putSessions([
        { session: session(1, { turns: [failed('t1', 'provider_error', 1), failed('t2', 'turn_crashed', 2), turn('t3')] }) },
        { session: session(2, { turns: [failed('t4', 'provider_error', 4), turn('t5', { acceptedAt: at(5) })] }) },
      ]);
      const listed = async (query: Partial<TurnsQuery>): Promise<string[]> =>
        (await allPages<TurnView>(async (cursor) => index.listTurns({ limit: 1, ...query, cursor }))).map(({ id }) => id);
      expect(await listed({ code: 'provider_error' })).toEqual(['t4', 't1']);
      expect(await listed({ code: 'provider_error', id: sessionId(1) })).toEqual(['t1']);
      expect(await listed({ code: 'provider_error', status: 'done' })).toEqual([]);
      for (const code of ['odd', 'provider-error', 'provider%', '%', '\\', 'provider_error","message":"'])
        expect(await listed({ code })).toEqual([]);
      expect(await listed({ id: 't3' })).toEqual(['t3']);
      expect(await listed({ id: sessionId(2) })).toEqual(['t5', 't4']);
      expect(await listed({ id: 't\0' })).toEqual([]);
    });

    it('gives back what no database likes: U+0000 and lone surrogates', async () => {
      const odd = 'a\0b\uD800c😀';
      const record = turn('t1', { status: 'failed', error: { code: 'internal_error', message: odd } });
      await index.putSession(session(1, { title: odd, turns: [record] }));
      await index.replaceSkills([{ ...skill('odd'), description: odd }]);
      expect((await index.listSessions({ limit: 1 })).items[0]?.title).toBe('a\uFFFDb\uFFFDc😀');
      expect((await index.findTurn('t1'))?.record).toEqual(record);
      expect((await index.listSkills())[0]?.description).toBe('a\uFFFDb\uFFFDc😀');
      expect(await index.findTurn('t\0')).toBeUndefined();
    });

    it('adds usage up by day, agent, channel and model', async () => {
      const dear = { model: 'openai/gpt-5', inputTokens: 7, outputTokens: 3, cachedInputTokens: 0, calls: 1, costUsd: null };
      const [cheap] = turn('').models;
      const models = cheap === undefined ? [] : [cheap, dear];
      await index.putSessions([
        { session: session(1, { turns: [turn('t1', { models }), turn('t2'), turn('t3', { endedAt: '2026-03-02T00:00:00.000Z' })] }) },
        { session: session(2, { agent: 'cs', turns: [turn('t4')] }) },
      ]);
      const row = { day: '2026-03-01', agent: 'admin', channel: 'web', model: 'openai/gpt-5-mini', turns: 1, calls: 2 };
      const tokens = { inputTokens: 100, cachedInputTokens: 40, outputTokens: 10, costUsd: 0.0003 };
      const ofDear = { ...row, model: 'openai/gpt-5', calls: 1, inputTokens: 7, cachedInputTokens: 0, outputTokens: 3, costUsd: null };
      const doubled = { ...row, turns: 2, calls: 4, inputTokens: 200, cachedInputTokens: 80, outputTokens: 20, costUsd: 0.0006 };
      const second = { ...row, ...tokens, day: '2026-03-02' };
      expect(await index.usage({})).toEqual([ofDear, doubled, { ...row, ...tokens, agent: 'cs' }, second]);
      expect(await index.usage({ from: '2026-03-02' })).toEqual([second]);
      expect(await index.usage({ from: '2026-03-02', to: '2026-03-02' })).toEqual([second]);
      expect((await index.usage({ to: '2026-03-01' })).length).toBe(3);
    });

    it('counts calls with the tenant’s own key apart, and as nothing that was spent, also of removed sessions', async () => {
      const [used] = turn('').models;
      if (used === undefined) throw new Error('no model was used');
      const models = [used, { ...used, ownKey: true as const, inputTokens: 7 }];
      const put = session(1, { turns: [turn('t1', { models })] });
      await index.putSession(put);
      const marks = async () => (await index.usage({})).map(({ model, ownKey, inputTokens }) => [model, ownKey, inputTokens]);
      const apart = [
        ['openai/gpt-5-mini', undefined, 100],
        ['openai/gpt-5-mini', true, 7],
      ];
      expect(await marks()).toEqual(apart);
      const day = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 2, 2) };
      const hours = { fromMs: Date.UTC(2026, 2, 1, 9), toMs: Date.UTC(2026, 2, 1, 23) };
      for (const period of [day, hours]) expect(await index.spent(period)).toEqual({ tokens: 110, costNano: 300_000 });
      await index.removeSession(toRemovedSession(put, put.turns, new Date()));
      expect(await marks()).toEqual(apart);
      for (const period of [day, hours]) expect(await index.spent(period)).toEqual({ tokens: 110, costNano: 300_000 });
    });

    it('adds up what a period has cost that begins and ends within days', async () => {
      const hours = [21, 22, 46, 47].map((hour) => new Date(Date.UTC(2026, 2, 1, hour)).toISOString());
      await index.putSession(session(1, { turns: hours.map((endedAt, number) => turn(`t${String(number)}`, { endedAt })) }));
      const at = (day: number, hour: number): number => Date.UTC(2026, 2, day, hour);
      const spent = async (fromMs: number, toMs: number): Promise<number> => (await index.spent({ fromMs, toMs })).tokens;
      expect(await index.spent({ fromMs: at(1, 22), toMs: at(2, 22) })).toEqual({ tokens: 110, costNano: 300_000 });
      expect(await spent(at(1, 0), at(2, 0))).toBe(220);
      expect(await spent(at(1, 21), at(2, 23))).toBe(330);
      expect(await spent(at(1, 22), at(4, 0))).toBe(330);
      const { usage } = toRemovedSession(
        session(1),
        hours.slice(0, 2).map((endedAt) => turn('t', { endedAt })),
        new Date(at(5, 0)),
      );
      await index.removeSession({ id: session(1).id, createdAt: session(1).createdAt, removedAt: new Date(at(5, 0)).toISOString(), usage });
      // Of these no more than the day is known: its noon decides.
      expect([await spent(at(1, 12), at(1, 13)), await spent(at(1, 13), at(3, 0))]).toEqual([220, 0]);
      expect(await spent(at(1, 13) - 1, at(1, 14))).toBe(0);
    });

    it('adds up what a period has cost also of turns whose records have texts that no column takes', async () => {
      const odd = '"endedAt":"2020-01-01T00:00:00.000Z" \0 \uD800';
      const steps = [{ kind: 'tool', name: odd, startedAt: at(1), durationMs: 1, isError: true } as const];
      const records = [turn('t1', { steps }), turn('t2', { status: 'failed', error: { code: 'provider_error', message: odd } })];
      await index.putSession(session(1, { turns: records }));
      expect((await index.spent({ fromMs: Date.UTC(2026, 2, 1, 9), toMs: Date.UTC(2026, 2, 1, 23) })).tokens).toBe(220);
    });

    it('replaces a turn that ended anew, with its usage', async () => {
      await index.putSession(session(1, { turns: [turn('t1')] }));
      const again = turn('t1', { status: 'cancelled', endedAt: at(24 * 3600), models: [] });
      await index.putSession(session(1, { revision: 2, turns: [again] }));
      expect((await index.findTurn('t1'))?.record).toEqual(again);
      expect(await index.usage({})).toEqual([]);
      await index.putSession(session(1, { revision: 1, turns: [turn('t1')] }));
      expect((await index.findTurn('t1'))?.record.status).toBe('cancelled');
    });

    it('removes a session with its turns, and keeps what it had used', async () => {
      const gone = session(1, { turns: [turn('t1'), turn('t2')] });
      await index.putSessions([{ session: gone }, { session: session(2) }]);
      const before = await index.usage({});
      const removed = toRemovedSession(gone, gone.turns, new Date());
      await index.removeSession(removed);
      await index.removeSession(removed);
      expect((await index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(2)]);
      expect((await index.listTurns({ limit: 9 })).items).toEqual([]);
      expect(await index.usage({})).toEqual(before);
    });

    it('does not bring a removed session back, but takes a later one of the same contact', async () => {
      const gone = session(1, { revision: 7, turns: [turn('t1')] });
      const later = session(1, { createdAt: at(60), updatedAt: at(61), revision: 1, title: 'later', turns: [turn('t2')] });
      await index.removeSession(toRemovedSession(gone, gone.turns, new Date()));
      await index.putSession(gone);
      expect((await index.listSessions({ limit: 9 })).items).toEqual([]);
      await index.putSession(later);
      await index.removeSession(toRemovedSession(gone, gone.turns, new Date()));
      expect((await index.listSessions({ limit: 9 })).items.map(({ title }) => title)).toEqual(['later']);
      expect((await index.listTurns({ limit: 9 })).items.map(({ id }) => id)).toEqual(['t2']);
      expect((await index.usage({}))[0]?.turns).toBe(2);
    });

    it('lets a later session of the same contact replace one whose removal it has not seen', async () => {
      await index.putSession(session(1, { revision: 9, title: 'earlier' }));
      await index.putSession(session(1, { revision: 1, createdAt: at(60), title: 'later' }));
      expect((await index.listSessions({ limit: 9 })).items[0]?.title).toBe('later');
    });

    it('lists skills by name and replaces all of them', async () => {
      await index.replaceSkills([skill('pricing'), skill('booking')]);
      expect(await index.listSkills()).toEqual([skill('booking'), skill('pricing')]);
      await index.replaceSkills([{ ...skill('pricing'), trigger: 'prices' }]);
      expect(await index.listSkills()).toEqual([{ ...skill('pricing'), trigger: 'prices' }]);
    });

    it('keeps tenants apart, also where their ids are equal', async () => {
      const other = store.forTenant('other');
      await index.putSession(session(1, { title: 'mine', turns: [turn('t1')] }));
      await other.putSession(session(1, { title: 'theirs', turns: [turn('t1', { status: 'failed' })] }));
      await index.replaceSkills([skill('mine')]);
      expect((await index.listSessions({ limit: 9 })).items.map(({ title }) => title)).toEqual(['mine']);
      expect((await other.listTurns({ limit: 9 })).items.map(({ status }) => status)).toEqual(['failed']);
      expect(await other.listSkills()).toEqual([]);
      await store.drop('other');
      expect((await other.listSessions({ limit: 9 })).items).toEqual([]);
      expect((await index.listSessions({ limit: 9 })).items.length).toBe(1);
    });

    it('refuses a name that is no tenant id', () => {
      expect(() => store.forTenant('../acme')).toThrow(TypeError);
    });

    it('shows each turn that was put, however quickly they come, to every process at once', async () => {
      const other = (await database.open()).forTenant('acme');
      const seen = [
        async () => other.listSessions({ limit: 9 }).then(({ items }) => items.length),
        async () => other.listTurns({ limit: 9 }).then(({ items }) => items.length),
        async () => other.usage({}).then(([row]) => row?.turns),
      ];
      for (const number of [0, 1, 2, 3, 4, 5]) {
        await index.putSession(session(number, { turns: [turn(`t_${String(number)}`)] }));
        expect(await seen[number % seen.length]?.()).toBe(number + 1);
      }
      await index.putSession(session(6, { turns: [turn('t_6')] }));
      expect((await other.findTurn('t_6'))?.sessionId).toBe(sessionId(6));
      expect(await other.findTurn('t_30')).toBeUndefined();
    });

    it('has what a process put that ended right after', async () => {
      const brief = await database.open();
      const puts = [1, 2, 3, 4, 5].map((number) => session(number, { turns: [turn(`t${String(number)}`)] }));
      for (const put of puts) await brief.forTenant('acme').putSession(put);
      await brief.close();
      expect((await index.listTurns({ limit: 9 })).items.length).toBe(5);
      expect((await index.usage({}))[0]?.turns).toBe(5);
    });

    it('takes a session that was put for removed, also before it is in the lists', async () => {
      const gone = session(1, { turns: [turn('t1')] });
      for (const put of [session(2), gone, session(3)]) await index.putSession(put);
      await index.removeSession(toRemovedSession(gone, gone.turns, new Date()));
      expect((await index.listSessions({ limit: 9 })).items.map(({ id }) => id)).toEqual([sessionId(3), sessionId(2)]);
      expect(await index.findTurn('t1')).toBeUndefined();
      expect((await index.usage({}))[0]?.turns).toBe(1);
    });

    it('loses nothing when several processes write to one tenant at once', async () => {
      const others = [index, (await database.open()).forTenant('acme'), (await database.open()).forTenant('acme')];
      const groups = others.flatMap((each, writer) =>
        Array.from({ length: 20 }, async (_, round) => {
          const puts = [0, 1, 2, 3].map((number) => {
            const id = `t${String(writer)}-${String(round)}-${String(number)}`;
            return { session: session(number, { revision: writer * 20 + round, turns: [turn(id)] }), turnIds: [id] };
          });
          await each.putSessions(round % 2 === 0 ? puts : puts.toReversed());
        }),
      );
      await Promise.all(groups);
      expect((await index.usage({}))[0]?.turns).toBe(240);
      expect((await index.listSessions({ limit: 9 })).items.length).toBe(4);
    });
  });
}
