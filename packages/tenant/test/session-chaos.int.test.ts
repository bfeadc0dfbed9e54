import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { Session } from '@concierge/contract';
import { FolderSync } from '../src/folder-sync.ts';
import { SessionCache } from '../src/session-cache.ts';
import { SessionStore } from '../src/session-store.ts';
import { newSession, newSessionId, silentLog, temporaryFolder } from './support.ts';

const writerPath = fileURLToPath(new URL('./session-writer.ts', import.meta.url));
const points = ['session.after-temp', 'session.after-link', 'session.after-publish'] as const;
const storeIn = (folder: string): SessionStore =>
  new SessionStore({ accountId: 'acme', folder, folders: new FolderSync(), cache: new SessionCache(), log: silentLog });

interface Writer {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<unknown>;
}

function startWriter(args: readonly string[], onLine: (line: string) => void): Writer {
  const child = spawn(process.execPath, ['--conditions=@concierge/source', '--no-warnings', writerPath, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  if (child.pid === undefined) throw new Error('the writer did not start');
  createInterface({ input: child.stdout }).on('line', onLine);
  // `close` and not `exit`: what it said last has been read by then.
  return { process: child, pid: child.pid, ended: once(child, 'close') };
}

/** Runs writers one after another in `lanes` lanes until as many have been killed as there are `plans`; wakes the stopped ones in between. */
async function runWriters(folder: string, id: string, plans: readonly string[]): Promise<{ published: string[]; conflicts: number }> {
  const published: string[] = [];
  const writers = new Set<Writer>();
  let conflicts = 0;
  const waiting = [...plans];
  const onLine = (line: string): void => {
    if (line === 'conflict') conflicts += 1;
    else published.push(line);
    if (published.length % 10 === 0) for (const writer of writers) writer.process.kill('SIGCONT');
  };
  const lane = async (): Promise<void> => {
    for (let plan = waiting.shift(); plan !== undefined; plan = waiting.shift()) {
      const writer = startWriter([folder, id, plan], onLine);
      writers.add(writer);
      await writer.ended;
      writers.delete(writer);
    }
  };
  await Promise.all([lane(), lane(), lane()]);
  return { published, conflicts };
}

async function isStopped(pid: number): Promise<boolean> {
  return / T /u.test((await readFile(`/proc/${String(pid)}/stat`, 'utf8')).replace(/^.*\)/u, ''));
}

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  const untilMs = Date.now() + 20_000;
  while (!(await check())) {
    if (Date.now() > untilMs) throw new Error('did not come about in 20 s');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('session files under fire', () => {
  it('hold every published turn once and always parse, whatever is killed or frozen where', async () => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const plans = Array.from({ length: 36 }, (_, index) => {
      const [kill, stop] = [points[index % 3], points[(index + 1) % 3]];
      return `${String(kill)}:kill:${String(4 + (index % 7))},${String(stop)}:stop:${String(1 + (index % 3))}`;
    });
    const { published, conflicts } = await runWriters(folder.path, id, plans);
    const session = await storeIn(folder.path).load(id);
    const turns = session?.turns.map((turn) => turn.id) ?? [];
    expect(new Set(turns).size).toBe(turns.length);
    // What was published without its writer living to say so is in there as well.
    expect(turns).toEqual(expect.arrayContaining(published));
    expect(published.length).toBeGreaterThan(plans.length);
    expect(conflicts).toBeGreaterThan(0);
    const folderOfRevisions = join(folder.path, '.revisions', id);
    for (const name of await readdir(folderOfRevisions)) {
      if (name.endsWith('.json')) Session.parse(JSON.parse(await readFile(join(folderOfRevisions, name), 'utf8')));
    }
    expect(JSON.parse(await readFile(join(folder.path, `${id}.json`), 'utf8'))).toEqual(session);
  }, 120_000);

  it.each(['session.after-temp', 'session.after-link'])('are not overwritten by a writer that was frozen at %s while others went on', async (point) => {
    await using folder = await temporaryFolder();
    const id = newSessionId();
    const store = storeIn(folder.path);
    for (let revision = 1; revision <= 3; revision += 1) await store.publish(newSession(id, { revision }));
    const lines: string[] = [];
    const writer = startWriter([folder.path, id, `${point}:stop,session.after-publish:kill`], (line) => lines.push(line));
    try {
      await until(async () => isStopped(writer.pid));
      const from = (await store.load(id))?.revision ?? 0;
      for (let revision = from + 1; revision <= from + 6; revision += 1) await store.publish(newSession(id, { revision, title: 'while it was frozen' }));
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
  }, 60_000);
});
