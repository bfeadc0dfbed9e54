// Preloaded into a service by a chaos run: on SIGUSR2 its event loop does not turn any more. Threads beside it go on.
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  process.on('SIGUSR2', () => {
    for (;;) Math.random();
  });
}
