// Preloaded into a service that is measured: writes what ran since the last time when it is asked for.
import { takeCoverage } from 'node:v8';

process.on('message', (message) => {
  if (message?.takeCoverage !== true) return;
  takeCoverage();
  process.send({ coverageTaken: true });
});
