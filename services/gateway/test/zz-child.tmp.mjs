import { readConfig } from '../src/config.ts';
import { wire } from '../src/wire.ts';
import { createLog } from '@concierge/runtime';
const config = readConfig();
const { port } = await wire(config, createLog({ service: 'gateway', level: 'warn' }));
process.send({ port });
process.on('message', async () => { for (let i = 0; i < 4; i += 1) { globalThis.gc(); await new Promise((r) => setTimeout(r, 100)); } process.send(process.memoryUsage());
  if (process.env.SNAP) { const v8 = await import('node:v8'); v8.writeHeapSnapshot('/tmp/e-heap-' + Date.now() + '.heapsnapshot'); } });
