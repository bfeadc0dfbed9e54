import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { startTenants } from './support.ts';

const writerPath = fileURLToPath(new URL('./messaging-writer.ts', import.meta.url));

/** Kills the writer in the middle of its work, when it has had so many messages accepted; their marks. */
async function writeAndDie(args: readonly string[], accepted: number): Promise<string[]> {
  const child = spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', writerPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const marks: string[] = [];
  createInterface({ input: child.stdout }).on('line', (mark) => {
    if (marks.push(mark) === accepted) child.kill('SIGKILL');
  });
  await once(child, 'close');
  return marks;
}

describe('messaging stores under kill -9', () => {
  it('have every message that was accepted, and nothing that is half written', async () => {
    await using fixture = await startTenants();
    const scope = await fixture.tenants.create('acme');
    const { id } = await scope.schedules.create(
      { name: 'first', message: 'of first', schedule: { every: '1h' } },
      { by: { kind: 'operator' }, authority: 'admin' },
    );
    const root = join(fixture.dataDir, 'tenants', 'acme');
    const rounds = Array.from({ length: 9 }, async (_, index) => writeAndDie([root, id], 3 + index));
    const marks = (await Promise.all(rounds)).flat();
    const waiting = await scope.outbox.waiting();
    expect(waiting.map(({ text }) => text)).toEqual(expect.arrayContaining(marks));
    expect(marks.length).toBeGreaterThanOrEqual(63);
    const schedule = await scope.schedules.find(id);
    expect(schedule?.message).toBe(`of ${String(schedule?.name)}`);
    const opened = await scope.channels.open('channel_c');
    expect(opened?.botToken).toBe(opened?.secretToken);
    const [lane = ''] = await scope.outbox.lanes();
    const records = await Promise.all([`outbox/${lane}`, 'cron', 'channels'].map(async (folder) => readdir(join(root, folder))));
    expect(records.flat().filter((name) => !name.startsWith('.tmp-') && !name.endsWith('.json'))).toEqual([]);
  });
});
