import { readFileSync, readdirSync } from 'node:fs';
import { eventually, type ServiceProcess, type TestRedis } from '@concierge/testing';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';

/** Linux counts processor time in hundredths of a second, whatever its kernel's own tick. */
const TICKS_PER_SECOND = 100;

/**
 * Processor time of a process since its start, in its own code and in the kernel, in seconds. @throws where there is no
 * /proc
 */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  // The second field is the program's name in brackets, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

export function cpuSecondsOfAll(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0);
}

/** Memory a process holds, in bytes: resident, shared pages included. */
export function residentBytes(pid: number): number {
  return readStatusBytes(pid, /^VmRSS:\s+(?<kilobytes>\d+) kB$/mu);
}

/** Memory that a process adds to the machine's: pages that it shares with others count in parts. */
export function proportionalBytes(pid: number): number {
  const match = /^Pss:\s+(?<kilobytes>\d+) kB$/mu.exec(readFileSync(`/proc/${String(pid)}/smaps_rollup`, 'utf8'));
  return Number(match?.groups?.['kilobytes'] ?? Number.NaN) * 1024;
}

/** The most it has held since its start. */
export function peakResidentBytes(pid: number): number {
  return readStatusBytes(pid, /^VmHWM:\s+(?<kilobytes>\d+) kB$/mu);
}

function readStatusBytes(pid: number, line: RegExp): number {
  const match = line.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  return Number(match?.groups?.['kilobytes'] ?? Number.NaN) * 1024;
}

interface RunningProcess {
  readonly pid: number;
  /** Its command line, words separated by spaces. */
  readonly command: string;
}

/** Every process that came from `pid`, itself not included. @throws where there is no /proc */
export function listDescendants(pid: number): RunningProcess[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/u.test(name) ? readParent(name) : undefined;
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const found: number[] = [];
  for (let next: readonly number[] = [pid]; next.length > 0;) {
    const level = new Set(next);
    next = [...parents].filter(([, parent]) => level.has(parent)).map(([child]) => child);
    found.push(...next);
  }
  return found.map((child) => ({ pid: child, command: readCommand(child) }));
}

/** undefined when it has gone meanwhile. */
function readParent(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

function readCommand(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim();
  } catch {
    return '';
  }
}

/** The server's process id, from itself. */
export async function findRedisPid(redis: TestRedis): Promise<number> {
  const client = redis.client();
  const facts = await client.info('server');
  client.disconnect();
  return Number(/^process_id:(?<pid>\d+)/mu.exec(facts)?.groups?.['pid'] ?? Number.NaN);
}

const SETTLE_MS = 1500;

/**
 * Has a service clear its memory, so that what is left is what it needs: its inspector is opened by a signal and asked
 * twice. The process must have been started with `--inspect-port=0`, and `log` must answer what it printed.
 */
export async function collectGarbage(service: ServiceProcess, log: () => Promise<string>): Promise<void> {
  const url = await findInspector(service, log);
  for (let pass = 0; pass < 2; pass += 1) {
    await command(url, 'HeapProfiler.collectGarbage');
    await wait(SETTLE_MS);
  }
}

async function findInspector(service: ServiceProcess, log: () => Promise<string>): Promise<string> {
  const urlIn = (text: string): string | undefined => /listening on (?<url>ws:\/\/\S+)/u.exec(text)?.groups?.['url'];
  const open = urlIn(await log());
  if (open !== undefined) return open;
  await service.signal('SIGUSR1');
  return eventually(async () => urlIn(await log()), { timeoutMs: 10_000 });
}

async function command(url: string, method: string): Promise<void> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  socket.send(JSON.stringify({ id: 1, method }));
  await once(socket, 'message');
  socket.close();
}
