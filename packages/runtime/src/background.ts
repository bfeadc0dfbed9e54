import type { Log } from './log.ts';

/** For a promise that no caller awaits: its failure is logged, never unhandled. */
export function background(task: Promise<unknown>, log: Pick<Log, 'error'>): void {
  task.catch((error: unknown) => {
    log.error({ err: error }, 'background task failed');
  });
}
