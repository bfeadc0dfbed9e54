import { setTimeout as wait } from 'node:timers/promises';

type FailAction = 'kill' | 'stop' | 'throw' | 'hang';

interface Armed {
  readonly action: FailAction;
  /** The number of passes before it strikes. */
  left: number;
}

/**
 * `FAILPOINT=name:kill|stop|throw|hang[:nth],…`. Read by config.ts of a service and only under test; in production the
 * table stays empty.
 */
const armed = new Map<string, Armed>();

/**
 * Arms the fail points of a test run. Anything that does not parse is an error: a fail point that is silently ignored
 * proves nothing.
 */
export function armFailpoints(spec: string): void {
  for (const part of spec.split(',').filter((item) => item !== '')) {
    const match = /^(?<name>[\w.-]+):(?<action>kill|stop|throw|hang)(?::(?<nth>\d+))?$/u.exec(part);
    if (match?.groups === undefined) throw new Error(`not a fail point: ${part}`);
    const { name = '', action = 'throw', nth = '1' } = match.groups;
    armed.set(name, { action: toAction(action), left: Number(nth) - 1 });
  }
}

function toAction(text: string): FailAction {
  return text === 'kill' || text === 'stop' || text === 'hang' ? text : 'throw';
}

/** Whether a test waits for this fail point. */
export function isArmed(name: string): boolean {
  return armed.has(name);
}

/**
 * A named place where tests break the process: kill -9, SIGSTOP, an exception, or an event loop that never turns again.
 * Costs one empty-map check in production.
 */
export async function failpoint(name: string): Promise<void> {
  if (armed.size === 0) return;
  const point = armed.get(name);
  if (point === undefined) return;
  point.left -= 1;
  if (point.left >= 0) return;
  armed.delete(name);
  if (point.action === 'throw') throw new Error(`fail point ${name}`);
  if (point.action === 'hang') hang();
  process.kill(process.pid, point.action === 'kill' ? 'SIGKILL' : 'SIGSTOP');
  // The signal arrives asynchronously: nothing past this line may run before it does.
  await wait(50);
}

function hang(): never {
  for (;;) Math.random();
}
