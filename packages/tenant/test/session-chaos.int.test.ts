import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { Session } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { SessionCache, SessionStore } from '../src/sessions/session-store.ts';
import { newSession, newSessionId, silentLog, temporaryFolder, until } from './support.ts';

const writerPath = fileURLToPath(new URL('./session-writer.ts', import.meta.url));
const points = ['session.after-temp', 'session.after-link', 'session.after-publish'] as const;
const storeIn = (folder: string): SessionStore =>
  new SessionStore({ tenantId: 'acme', folder, folders: new FolderSync(), cache: new SessionCache(), log: silentLog });

interface Writer {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<unknown>;
}

function startWriter(args: readonly string[], onLine: (line: string) => void): Writer {
  const child = spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', writerPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.pid === undefined) throw new Error('the writer did not start');
  createInterface({ input: child.stdout }).on('line', onLine);
  // `close` and not `exit`: its last output has been read by then.
  return { process: child, pid: child.pid, ended: once(child, 'close') };
}

/**
 * Runs the plans in three lanes, one writer after another in each, until every one has been killed. Wakes the frozen
 * when all are.
 */
async function runWriters(folder: string, id: string, plans: readonly string[]): Promise<{ published: string[]; conflicts: number }> {
  const published: string[] = [];
  const writers = new Set<Writer>();
  // A frozen writer would stay, and the test's process with it, where the wait below ends in an error.
  using cleanUp = new DisposableStack();
  cleanUp.defer(() => {
    waiting.length = 0;
    for (const { process } of writers) process.kill('SIGKILL');
  });
  let conflicts = 0;
  const waiting = [...plans];
  const wake = (): void => {
    for (const writer of writers) writer.process.kill('SIGCONT');
  };
  const onLine = (line: string): void => {
    if (line === 'conflict') conflicts += 1;
    else if (published.push(line) % 10 === 0) wake();
  };
  const lane = async (): Promise<void> => {
    for (let plan = waiting.shift(); plan !== undefined; plan = waiting.shift()) {
      const writer = startWriter([folder, id, plan], onLine);
      writers.add(writer);
      await writer.ended;
      writers.delete(writer);
    }
  };
  let running = true;
  const lanes = Promise.all([lane(), lane(), lane()]).finally(() => {
    running = false;
  });
  while (running) {
    await until(async () => !running || (await Promise.all([...writers].map(async (writer) => isStopped(writer.pid)))).every(Boolean));
    wake();
  }
  await lanes;
  return { published, conflicts };
}

async function isStopped(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${String(pid)}/stat`, 'utf8').catch(() => '');
  return stat.replace(/^.*\)/u, '').startsWith(' T ');
}

describe('session files under fire', () => {
  it('hold every published turn once and always parse, whatever is killed or frozen where', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const plans = Array.from({ length: 15 }, (_, index) => {
      const [kill, stop] = [points[index % 3], points[(index + 1) % 3]];
      return `${String(kill)}:kill:${String(4 + (index % 7))},${String(stop)}:stop:${String(1 + (index % 3))}`;
    });
    const { published, conflicts } = await runWriters(folder.path, id, plans);
    const session = await storeIn(folder.path).load(id);
    const turns = session?.turns.map((turn) => turn.id) ?? [];
    expect(new Set(turns).size).toBe(turns.length);
    // Revisions whose writer died before it reported them are in there as well.
    expect(turns).toEqual(expect.arrayContaining(published));
    expect(published.length).toBeGreaterThan(plans.length);
    expect(conflicts).toBeGreaterThan(0);
    const folderOfRevisions = join(folder.path, '.revisions', id);
    for (const name of await readdir(folderOfRevisions)) {
      if (name.endsWith('.json')) Session.parse(JSON.parse(await readFile(join(folderOfRevisions, name), 'utf8')));
    }
    expect(JSON.parse(await readFile(join(folder.path, `${id}.json`), 'utf8'))).toEqual(session);
  });

  it.each(['session.after-temp', 'session.after-link'])(
    'are not overwritten by a writer that was frozen at %s while others went on',
    async (point) => {
      await using folder = await temporaryFolder();
      const id = newSessionId();
      const store = storeIn(folder.path);
      for (let revision = 1; revision <= 3; revision += 1) await store.publish(newSession(id, { revision }));
      const lines: string[] = [];
      const writer = startWriter([folder.path, id, `${point}:stop,session.after-publish:kill`], (line) => lines.push(line));
      try {
        await until(async () => isStopped(writer.pid));
        const from = (await store.load(id))?.revision ?? 0;
        for (let revision = from + 1; revision <= from + 6; revision += 1)
          await store.publish(newSession(id, { revision, title: 'while it was frozen' }));
        writer.process.kill('SIGCONT');
        await writer.ended;
        expect(lines).toEqual(['conflict']);
        const session = await storeIn(folder.path).load(id);
        // It tried again on top of what it then found, and was killed right after.
        expect(session).toMatchObject({ revision: from + 7, title: 'while it was frozen' });
        expect(session?.turns).toHaveLength(1);
      } finally {
        writer.process.kill('SIGKILL');
      }
    },
  );

  it('show the newest under their own name after a writer was frozen before it put its revision there', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    for (let revision = 1; revision <= 3; revision += 1) await store.publish(newSession(id, { revision }));
    const lines: string[] = [];
    const writer = startWriter([folder.path, id, 'session.after-check:stop', 'once'], (line) => lines.push(line));
    try {
      await until(async () => isStopped(writer.pid));
      const stoppedAtMs = performance.now();
      const published = await store.load(id);
      expect(published).toMatchObject({ revision: 4 });
      for (let revision = 5; revision <= 7; revision += 1) await store.publish(newSession(id, { revision, turns: published?.turns ?? [] }));
      await until(() => performance.now() - stoppedAtMs > 400);
      writer.process.kill('SIGCONT');
      await writer.ended;
      expect(lines).toEqual(published?.turns.map((turn) => turn.id));
      expect(JSON.parse(await readFile(join(folder.path, `${id}.json`), 'utf8'))).toMatchObject({ revision: 7 });
    } finally {
      writer.process.kill('SIGKILL');
    }
  });
});
