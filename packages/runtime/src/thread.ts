import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * A thread that runs the module `name` beside the caller's (`import.meta.url`), compiled or from source, with an
 * environment that has nothing in it. It keeps the process alive until it is unreferenced or ended.
 */
export function startThread(beside: string, name: string, options: Pick<WorkerOptions, 'workerData' | 'resourceLimits'>): Worker {
  // Below the folder that was named, one for this version of Node.
  const cacheFolder = getCompileCacheDir();
  return new Worker(new URL(`./${name}${beside.endsWith('.ts') ? '.ts' : '.js'}`, beside), {
    ...options,
    // Without what was compiled before, a thread from source loads a compiler: 15 MB for as long as it lives.
    env: cacheFolder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cacheFolder) },
    // Not the flags of the main thread: preloaded modules belong to the service, and some flags end a thread at once.
    execArgv: [],
  });
}
