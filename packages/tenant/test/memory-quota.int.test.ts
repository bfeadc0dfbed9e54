import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { startTenants } from './support.ts';

const run = promisify(execFile);
const writerPath = fileURLToPath(new URL('./memory-writer.ts', import.meta.url));
const noteBytes = 10_000;
const places = 5;

describe('the memory quota', () => {
  it('is exact when many notes are written at once', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const maxBytes = (await scope.memory.usedBytes()) + places * noteBytes + noteBytes / 2;
    await scope.updateSettings({ limits: { memoryBytes: maxBytes } });
    const writes = Array.from({ length: 20 }, async (_, at) => {
      // By every way that is counted.
      if (at % 2 === 0) return scope.files.writeText(`memory/note-${String(at)}.md`, 'x'.repeat(noteBytes));
      return scope.memory.forContact(`contact-${String(at)}`).write({ text: 'x'.repeat(noteBytes - 100) });
    });
    const outcomes = await Promise.allSettled(writes);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(places);
    expect(await scope.memory.usedBytes()).toBeLessThanOrEqual(maxBytes);
    const refusals = outcomes.flatMap((outcome): unknown[] => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(refusals).toEqual(Array.from({ length: 20 - places }, () => expect.objectContaining({ code: 'memory_quota' })));
  });

  it('is exact across processes', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    const maxBytes = (await scope.memory.usedBytes()) + places * noteBytes + noteBytes / 2;
    await scope.updateSettings({ limits: { memoryBytes: maxBytes } });
    const writers = ['one', 'two', 'three'].map(async (name) => {
      const args = ['--conditions=@concierge/source', '--no-warnings', writerPath, world.dataDir, name, '10', String(noteBytes)];
      return Number((await run(process.execPath, args)).stdout);
    });
    const taken = await Promise.all(writers);
    expect(taken.reduce((sum, one) => sum + one, 0)).toBe(places);
    expect(await scope.memory.usedBytes()).toBeLessThanOrEqual(maxBytes);
  });
});
