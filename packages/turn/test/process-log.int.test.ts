import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { armFailpoints } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { eventually, gate, silentLog, untilAborted } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { newReconciler, type Core } from '@concierge/testing/core';
import { LogRecovery } from '../src/wal/log-recovery.ts';
import { keyOf } from '../src/keys.ts';
import { removeTenant } from '../src/index.ts';
import { TurnWriter } from '../src/streams/turn-writer.ts';
import { holdClock, input, parse, TestTurns, textDelta } from './test-turns.ts';

let fixture: TestTurns;
let scope: TenantScope;
let gateway: Core;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  scope = await fixture.scope();
  gateway = await fixture.another();
});

const files = async (): Promise<string[]> =>
  (await readdir(join(fixture.dataDir, 'tenants', 'acme', 'inbox'))).filter((name) => name.endsWith('.json'));
const logs = async (): Promise<string[]> => readdir(join(fixture.dataDir, 'tenants', '.wal'));
const send = async (text: string, facts: Parameters<typeof input>[1] = {}): Promise<string> =>
  (await gateway.turns.accept(await gateway.tenants.open('acme'), input(text, facts))).turnId;
/** As the process of this log was found dead: it is not renewed any more. */
const die = async (): Promise<void> => void (await gateway.redis.del(keyOf.logs));
const recover = async ({ redis, tenants }: Core): Promise<void> => new LogRecovery({ redis, tenants, log: silentLog }).recoverDead();
const texts = async (sessionId: string): Promise<string[]> =>
  ((await scope.sessions.view(sessionId))?.messages ?? []).flatMap((message) => (message.role === 'user' ? [message.text] : []));

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a turn that is accepted in the log', () => {
  it('has no file, and every process sees it at once', async () => {
    const clock = holdClock();
    const turnId = await send('hello', { sender: 'ann' });
    expect(await files()).toEqual([]);
    expect(await scope.inbox.turnIds()).toEqual([turnId]);
    expect(await scope.inbox.read(turnId)).toMatchObject({ turnId, text: 'hello', tenantId: 'acme' });
    expect(await fixture.turns.find(scope, turnId)).toMatchObject({ id: turnId, status: 'waiting' });
    const { items } = await fixture.turns.list(scope, { limit: 10 });
    expect(items.map(({ id }) => id)).toEqual([turnId]);
    clock.release();
    await fixture.turns.cancel(scope, turnId);
    await fixture.worker();
    expect(parse(await fixture.read(scope, turnId)).at(-1)).toMatchObject({ type: 'done', data: { finishReason: 'cancelled' } });
  });

  it('is answered without ever having a file', async () => {
    await fixture.worker();
    const turnId = await send('hello');
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    expect(await files()).toEqual([]);
    await gateway.accepted.stop();
    expect(await files()).toEqual([]);
  });

  it('is read as its stream has it, also between its place in the session and the end of the stream', async () => {
    const saved = gate();
    // eslint-disable-next-line typescript/unbound-method -- called with its object below
    const { finish } = TurnWriter.prototype;
    jest.spyOn(TurnWriter.prototype, 'finish').mockImplementation(async function (this: TurnWriter, ...end) {
      saved.open();
      const sinceMs = performance.now();
      // As long as a worker waits for an index that is slow.
      await eventually(() => performance.now() - sinceMs > 2000);
      await finish.apply(this, end);
    });
    fixture.play = async ({ writer }) => {
      for (const delta of ['one ', 'two']) {
        writer.emit(textDelta(delta));
        await writer.flush();
      }
      return 'one two';
    };
    await fixture.worker();
    const turnId = await send('hello');
    await saved.opened;
    const read = parse(await fixture.read(scope, turnId));
    expect(read.map(({ type }) => type)).toEqual(['session', 'text_delta', 'text_delta', 'done']);
    expect(parse(await fixture.read(scope, turnId))).toEqual(read);
  });

  it('gets its file when it is not answered after some seconds, and its place in Redis is freed', async () => {
    const turnId = await send('hello');
    await eventually(async () => (await files()).length > 0);
    expect(await files()).toEqual([`${turnId}.json`]);
    await eventually(async () => (await gateway.redis.hkeys(keyOf.logged('acme'))).length === 0);
    await fixture.worker();
    expect(parse(await fixture.read(scope, turnId)).at(-1)?.type).toBe('done');
    await eventually(async () => (await files()).length === 0);
  });

  it('gets its file also when the rest of its acceptance failed', async () => {
    armFailpoints('accept.after-inbox:throw');
    await expect(send('hello')).rejects.toThrow('fail point');
    await eventually(async () => (await files()).length === 1);
    fixture.reconciler.start();
    await fixture.worker();
    await eventually(() => fixture.started.length === 1);
  });

  it('gets its file when its process ends, and the log goes', async () => {
    const turnId = await send('hello');
    const before = await logs();
    await gateway.accepted.stop();
    expect(await files()).toEqual([`${turnId}.json`]);
    expect(await logs()).toHaveLength(before.length - 1);
    expect(await gateway.redis.zcard(keyOf.logs)).toBe(before.length - 1);
  });

  it('that was refused is not accepted by a recovery', async () => {
    const begun = gate();
    fixture.play = async ({ signal }) => {
      begun.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      throw signal.reason;
    };
    const worker = await fixture.worker();
    await send('first');
    await begun.opened;
    await expect(send('second', { busy: 'reject' })).rejects.toMatchObject({ code: 'session_busy' });
    await worker.stop(0);
    await die();
    await fixture.reconciler.reconcile();
    expect(await Promise.all((await scope.inbox.turnIds()).map(async (id) => (await scope.inbox.read(id))?.text))).toEqual(['first']);
  });
});

describe('the log of a process that died', () => {
  it('is recovered: what its callers were told of is answered, in order, and so is what was about to be', async () => {
    const first = await send('first');
    armFailpoints('accept.after-inbox:throw');
    await expect(send('second')).rejects.toThrow('fail point');
    await die();
    const { sessionId } = (await scope.inbox.read(first)) ?? { sessionId: '' };
    fixture.reconciler.start();
    await fixture.worker();
    await eventually(async () => (await texts(sessionId)).length === 2);
    expect(await texts(sessionId)).toEqual(['first', 'second']);
    // The log of the dead one goes once it has been recovered, which its turns do not wait for.
    await eventually(async () => (await logs()).length < 2);
  });

  it('is recovered by two processes at once, and each turn is answered once', async () => {
    await Promise.all(Array.from({ length: 50 }, async (_, index) => send(`turn ${String(index)}`, { sender: `s${String(index)}` })));
    await fixture.server.flush();
    await Promise.all([fixture.reconciler.reconcile(), newReconciler(await fixture.another()).reconcile()]);
    await fixture.worker({ concurrency: 16 });
    fixture.reconciler.start();
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    expect(fixture.started.length).toBe(50);
    expect(new Set(fixture.started).size).toBe(50);
  });

  it('is recovered for every other tenant when the files of one cannot be written', async () => {
    const bolt = await fixture.scope('bolt');
    const { turnId: later } = await gateway.turns.accept(await gateway.tenants.open('bolt'), input('waits'));
    const turnId = await send('hello');
    const inbox = join(bolt.root, 'inbox');
    await rename(inbox, `${inbox}.away`);
    await writeFile(inbox, '');
    await die();
    await recover(gateway);
    expect([await files(), (await logs()).length]).toEqual([[`${turnId}.json`], 1]);
    await rm(inbox);
    await rename(`${inbox}.away`, inbox);
    await recover(gateway);
    expect(await bolt.inbox.filedTurnIds()).toEqual([later]);
    expect(await logs()).toEqual([]);
  });

  it.each(['log.after-seal', 'log.before-remove'])('is recovered by the next process when the first one fails at %s', async (point) => {
    const turnId = await send('hello');
    await die();
    armFailpoints(`${point}:throw`);
    await expect(recover(gateway)).rejects.toThrow('fail point');
    await recover(await fixture.another());
    expect(await files()).toEqual([`${turnId}.json`]);
    await fixture.worker();
    await fixture.read(scope, turnId);
    expect(fixture.started).toEqual([turnId]);
  });

  it('whose process wakes up again acknowledges nothing by its log alone', async () => {
    const early = await send('early', { sender: 'ann' });
    await die();
    const late = await send('late', { sender: 'bob' });
    expect(await files()).toContain(`${late}.json`);
    // It finds that it was taken for dead, files what it has, and begins another log.
    await eventually(async () => (await files()).includes(`${early}.json`));
    await eventually(async () => {
      await gateway.accepted.open();
      return (await files()).includes(`${await send('again', { sender: 'cyd' })}.json`) === false;
    });
  });
});

describe('when Redis has lost everything', () => {
  it('turns that are in logs alone are answered in the order of their acceptance, by whichever gateway', async () => {
    const other = await fixture.another();
    const clock = holdClock();
    const ids: string[] = [];
    for (let index = 0; index < 10; index += 1) {
      const { turns, tenants } = index % 2 === 0 ? gateway : other;
      ids.push((await turns.accept(await tenants.open('acme'), input(`turn ${String(index)}`))).turnId);
      // What two gateways accept in one millisecond has no order but that of numbers on disk, and gets files.
      const acceptedMs = Date.now();
      await eventually(() => Date.now() > acceptedMs);
    }
    expect(await files()).toEqual([]);
    await fixture.server.flush();
    // Nothing is lost from sight meanwhile.
    expect((await scope.inbox.turnIds()).toSorted()).toEqual(ids.toSorted());
    expect(await scope.inbox.read(ids[3] ?? '')).toMatchObject({ text: 'turn 3' });
    clock.release();
    await fixture.reconciler.reconcile();
    await fixture.worker();
    await fixture.read(scope, ids.at(-1) ?? '');
    expect(fixture.started).toEqual(ids);
  });

  it('a turn that was answered a moment ago is not answered again', async () => {
    await fixture.worker();
    const turnId = await send('hello');
    await fixture.read(scope, turnId);
    const { play } = fixture;
    const answered: string[] = [];
    fixture.play = async (run) => {
      answered.push(run.turn.turnId);
      return await play(run);
    };
    await fixture.server.flush();
    await fixture.reconciler.reconcile();
    // Its end is repeated: Redis knew whether all was done that follows it.
    await eventually(async () => (await files()).length === 0);
    const next = await send('next');
    await fixture.read(scope, next);
    expect(answered).toEqual([next]);
    expect(fixture.started.filter((id) => id === next)).toEqual([next]);
    expect(fixture.started.at(0)).toBe(turnId);
  });

  it('a turn whose worker published it and died before what follows its end is given to another', async () => {
    const published = gate();
    fixture.play = async (run) => {
      await fixture.publish(run, 'the answer');
      published.open();
      await untilAborted(run.signal);
      throw run.signal.reason;
    };
    const worker = await fixture.worker();
    const turnId = await send('hello');
    await published.opened;
    await fixture.server.flush();
    await worker.stop(0);
    await fixture.reconciler.reconcile();
    await fixture.worker();
    await eventually(() => fixture.started.length === 2);
    await eventually(async () => (await scope.inbox.turnIds()).length === 0);
    expect(fixture.started).toEqual([turnId, turnId]);
  });

  it('a conversation that was removed a moment ago stays removed', async () => {
    const worker = await fixture.worker();
    const turnId = await send('a secret');
    await fixture.read(scope, turnId);
    const { sessionId } = (await fixture.index.forTenant('acme').findTurn(turnId)) ?? { sessionId: '' };
    expect(await scope.removeSession(sessionId)).toBe(true);
    await worker.stop(0);
    await fixture.server.flush();
    await fixture.reconciler.reconcile();
    expect(await scope.inbox.turnIds()).toEqual([]);
    await gateway.accepted.stop();
    expect(await files()).toEqual([]);
  });

  it('a tenant that was deleted stays deleted, also when another has its name', async () => {
    await send('a secret');
    await removeTenant({ tenants: fixture.tenants, turns: fixture.turns, redis: gateway.redis }, 'acme');
    const heir = await fixture.tenants.create('acme');
    await fixture.server.flush();
    await fixture.reconciler.reconcile();
    await gateway.accepted.stop();
    expect(await heir.inbox.filedTurnIds()).toEqual([]);
  });
});

describe('the same message in two logs', () => {
  it('is one turn, and keeps its place when it is brought again while Redis is gone', async () => {
    const message = input('first', { dedupeId: 'message-1' });
    const other = await fixture.another();
    const [one, two] = [await gateway.tenants.open('acme'), await other.tenants.open('acme')];
    const first = await gateway.turns.accept(one, message);
    expect(await other.turns.accept(two, message)).toEqual({ ...first, replayed: true });
    await expect(other.turns.accept(two, { ...message, requestHash: 'other' })).rejects.toMatchObject({ code: 'idempotency_conflict' });
    const second = await gateway.turns.accept(one, input('second'));
    await fixture.server.fill();
    await other.turns.accept(two, message);
    await fixture.server.hasRoom();
    await fixture.worker();
    fixture.reconciler.start();
    await fixture.read(scope, second.turnId);
    expect(fixture.started).toEqual([first.turnId, second.turnId]);
  });
});
