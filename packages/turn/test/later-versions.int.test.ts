import { readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { FolderSync, WriteAheadLog } from '@concierge/files';
import { renderTurn, type TenantScope } from '@concierge/tenant';
import { eventually, silentLog } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { newLogId, renderAccepted } from '../src/wal/log-records.ts';
import { LogRecovery } from '../src/wal/log-recovery.ts';
import { keyOf } from '../src/keys.ts';
import { readRendered, toEndEvent, toEvent } from '../src/streams/stream-entry.ts';
import { input, parse, TestTurns } from './test-turns.ts';

let fixture: TestTurns;
let scope: TenantScope;

setUpEach(async (stack) => {
  fixture = stack.use(await TestTurns.start());
  scope = await fixture.scope();
});

const logsFolder = (): string => join(fixture.dataDir, 'tenants', '.wal');
const toInboxPath = (turnId: string): string => join(fixture.dataDir, 'tenants', 'acme', 'inbox', `${turnId}.json`);

/** As a service writes it: a worker that looks meanwhile sees one or the other, and no half of a file. */
async function replaceInboxFile(turnId: string, content: string): Promise<void> {
  const path = join(fixture.dataDir, `${turnId}.new`);
  await writeFile(path, content);
  await rename(path, toInboxPath(turnId));
}

/** A turn with a file, which this version understands, and what a later one makes of its file. */
async function acceptTurn(
  sender = 'ann',
): Promise<{ readonly turnId: string; readonly sessionId: string; readonly known: string; readonly later: string }> {
  const { turns, tenants, accepted } = await fixture.another();
  const { turnId, sessionId } = await turns.accept(await tenants.open('acme'), input('hello', { sender }));
  await accepted.stop();
  const known = await readFile(toInboxPath(turnId), 'utf8');
  return { turnId, sessionId, known, later: JSON.stringify({ ...JSON.parse(known), version: 2 }) };
}

describe('a turn that a later version alone understands', () => {
  it('waits, and is answered by whoever understands it', async () => {
    const { turnId, sessionId, known, later } = await acceptTurn();
    await replaceInboxFile(turnId, later);
    await fixture.worker();
    const { redis } = await fixture.another();
    // A worker had it and has given it back.
    await eventually(async () => (await redis.hget(keyOf.lease({ tenantId: 'acme', sessionId }), 'until')) === '0');
    expect(fixture.started).toEqual([]);
    expect(await readdir(join(fixture.dataDir, 'tenants', 'acme', 'inbox'))).toEqual([`${turnId}.json`]);
    // As the later version would.
    await replaceInboxFile(turnId, known);
    await eventually(async () => {
      await fixture.reconciler.reconcile();
      return (await scope.inbox.turnIds()).length === 0;
    });
    expect(parse(await fixture.read(scope, turnId)).at(-1)).toMatchObject({ type: 'done' });
    expect(fixture.started).toEqual([turnId]);
  });

  it('does not keep the others of its tenant from being restored', async () => {
    const { turnId, later } = await acceptTurn();
    const other = await acceptTurn('bob');
    await replaceInboxFile(turnId, later);
    await fixture.server.flush();
    await fixture.reconciler.reconcile();
    await fixture.worker();
    expect(parse(await fixture.read(scope, other.turnId)).at(-1)).toMatchObject({ type: 'done' });
    // The file of a turn that has ended is removed after its end, and is listed as waiting until then.
    await eventually(async () => !(await scope.inbox.hasFile(other.turnId)));
    const { items } = await fixture.turns.list(scope, { limit: 9, status: 'waiting' });
    expect(items).toEqual([]);
    expect(await readFile(toInboxPath(turnId), 'utf8')).toBe(later);
  });
});

describe('the log of a later version that died', () => {
  it('stays until that version recovers it, and what is understood of it is answered, once', async () => {
    const { turnId, known } = await acceptTurn();
    const turn = await scope.inbox.read(turnId);
    if (turn === undefined) throw new Error('the turn is gone');
    await scope.inbox.remove(turnId);
    await fixture.server.flush();
    const [understood, other] = ['t_00000000000000000000000000000001', 't_00000000000000000000000000000002'];
    const identity = await scope.identity();
    const logId = newLogId();
    const wal = await WriteAheadLog.create({ folder: join(logsFolder(), logId), folders: new FolderSync() });
    await wal.append(`${JSON.stringify({ kind: 'moved', identity })}\nwhat only a later version knows`);
    await wal.append(renderAccepted(identity, JSON.stringify({ ...JSON.parse(known), turnId: other, version: 2 })));
    await wal.append(renderAccepted(identity, renderTurn({ ...turn, turnId: understood })));

    const core = await fixture.another();
    const recovery = new LogRecovery({ redis: core.redis, tenants: core.tenants, log: silentLog });
    await recovery.recoverDead();
    expect(await readdir(logsFolder())).toContain(logId);
    expect(await scope.inbox.filedTurnIds()).toEqual([understood]);
    await fixture.reconciler.reconcile();
    await fixture.worker();
    expect(parse(await fixture.read(scope, understood)).at(-1)).toMatchObject({ type: 'done' });
    await eventually(async () => (await scope.inbox.filedTurnIds()).length === 0);
    await core.redis.del(keyOf.turn(understood));
    await recovery.recoverDead();
    expect(await scope.inbox.filedTurnIds()).toEqual([]);
    expect(await readdir(logsFolder())).toContain(logId);
    await wal.remove();
  });

  it('stays, too, when its segments have another format', async () => {
    const logId = newLogId();
    const folder = join(logsFolder(), logId);
    const wal = await WriteAheadLog.create({ folder, folders: new FolderSync() });
    const [segment = ''] = await readdir(folder);
    const bytes = await readFile(join(folder, segment));
    bytes.writeUInt8(2, 7);
    await writeFile(join(folder, segment), bytes);
    const core = await fixture.another();
    await new LogRecovery({ redis: core.redis, tenants: core.tenants, log: silentLog }).recoverDead();
    expect(await readdir(logsFolder())).toContain(logId);
    await wal.remove();
  });
});

describe('the stream of a later version', () => {
  it('is read without the events that this one does not know', () => {
    expect(toEvent({ id: '1-1', type: 'approval_needed', json: '{}' })).toBeNull();
    const json = JSON.stringify({ code: 'budget_spent', message: 'No money left.', retryable: false, turnId: 't', hint: 'Pay.' });
    expect(readRendered(`event: error\ndata: ${json}\nid: 1-2\n\n`)).toMatchObject([{ type: 'error', data: { code: 'budget_spent' } }]);
  });

  it('ends with any error that the record names', async () => {
    const { turnId } = await acceptTurn();
    await fixture.worker();
    await fixture.read(scope, turnId);
    const sessionId = (await scope.index.findTurn(turnId))?.sessionId ?? '';
    const record = await scope.sessions.findTurn(sessionId, turnId);
    if (record === undefined) throw new Error('the turn has not ended');
    const path = join(fixture.dataDir, 'tenants', 'acme', 'sessions', '.revisions', sessionId, '0000000001.json');
    const error = { code: 'budget_spent', message: 'No money left.' };
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), turns: [{ ...record, status: 'failed', error }] }));
    const elsewhere = await (await fixture.another()).tenants.open('acme');
    const failed = await elsewhere.sessions.findTurn(sessionId, turnId);
    if (failed === undefined) throw new Error('the session is gone');
    expect(toEndEvent(failed)).toMatchObject({ type: 'error', data: { ...error, retryable: true } });
  });
});
