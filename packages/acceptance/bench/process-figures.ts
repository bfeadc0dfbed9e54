import { readFileSync } from 'node:fs';

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
  const match = /^VmRSS:\s+(?<kilobytes>\d+) kB$/mu.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  return Number(match?.groups?.['kilobytes'] ?? Number.NaN) * 1024;
}
