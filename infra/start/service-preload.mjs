// Preloaded into each service that the start script runs.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// When the start script is gone (kill -9, closed terminal), the service drains instead of staying behind.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));

// Loading leaves a third of an idle service's memory as garbage, which V8 keeps for as long as nothing happens.
process.on('message', (message) => {
  if (message?.tidyUp !== true) return;
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')({ type: 'major', execution: 'sync', flavor: 'last-resort' });
});

// The channel alone must not keep a service alive that has nothing left to do.
process.channel?.unref();
