// Preloaded into each service that the start script runs, and into each process of a service that has several.
import cluster from 'node:cluster';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** As the start script waits: the others are still starting on the same cores. */
const TIDY_AFTER_MS = 1500;

// When the start script is gone (kill -9, closed terminal), the service drains instead of staying behind. What a
// primary started stops with its primary.
if (cluster.isPrimary) process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));

// Loading leaves a third of an idle service's memory as garbage, which V8 keeps for as long as nothing happens.
process.on('message', (message) => {
  if (message?.tidyUp !== true) return;
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')({ type: 'major', execution: 'sync', flavor: 'last-resort' });
});

// The start script knows only the primary of several processes.
cluster.on('message', (worker, message) => {
  if (message?.ready === true) setTimeout(() => worker.isConnected() && worker.send({ tidyUp: true }), TIDY_AFTER_MS).unref();
});

// The channel alone must not keep a service alive that has nothing left to do.
process.channel?.unref();
