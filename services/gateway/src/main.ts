import cluster from 'node:cluster';
import { startService } from '@concierge/runtime';
import { readConfig } from './config.ts';

await startService({
  name: 'gateway',
  readConfig,
  load: async ({ processes }) => {
    // The primary of several processes serves nothing, and loads nothing of what serves.
    if (processes > 1 && cluster.isPrimary) return (await import('./processes/primary.ts')).wirePrimary;
    return (await import('./wire.ts')).wire;
  },
});
