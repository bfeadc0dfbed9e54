import { readdirSync, readFileSync } from 'node:fs';

export interface RunningProcess {
  readonly pid: number;
  /** Its command line, words separated by spaces. */
  readonly command: string;
}

/** Every process that came from `pid`, itself not included. @throws where there is no /proc */
export function descendantsOf(pid: number): RunningProcess[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const parent = /^\d+$/u.test(name) ? parentOf(name) : undefined;
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const found: number[] = [];
  for (let next: readonly number[] = [pid]; next.length > 0;) {
    const level = new Set(next);
    next = [...parents].filter(([, parent]) => level.has(parent)).map(([child]) => child);
    found.push(...next);
  }
  return found.map((child) => ({ pid: child, command: commandOf(child) }));
}

/** undefined when it has gone meanwhile. */
function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim();
  } catch {
    return '';
  }
}
