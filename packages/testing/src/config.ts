/** On a machine that must offer everything (`CI=true`), what cannot be run is a failure and not a skip. */
export const mustRunAll = process.env['CI'] === 'true';

/** Of the processes that run test files side by side: from 1, and 0 where Jest runs nothing. */
export const workerNumber = Number(process.env['JEST_WORKER_ID'] ?? 0);

/** Returns the environment of a child process: that of this process, and `more`. */
export function inheritedEnvironment(more: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  return { ...process.env, ...more };
}
