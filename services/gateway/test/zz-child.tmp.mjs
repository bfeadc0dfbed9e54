import { readConfig } from '../src/config.ts';
import { wire } from '../src/wire.ts';
import { createLog } from '@concierge/runtime';
const config = readConfig();
const { port } = await wire(config, createLog({ service: 'gateway', level: 'warn' }));
process.send({ port });
process.on('message', async () => { for (let i = 0; i < 4; i += 1) { globalThis.gc(); await new Promise((r) => setTimeout(r, 100)); } const v8 = await import('node:v8'); const h = v8.getHeapStatistics(); const fs = await import('node:fs'); const st = fs.readFileSync('/proc/self/smaps_rollup','utf8'); process.send({...process.memoryUsage(), physical: h.total_physical_size, malloced: h.malloced_memory, anon: Number(/Anonymous:\s+(\d+)/.exec(st)[1])*1024, heapseg: (()=>{ const m = fs.readFileSync('/proc/self/smaps','utf8'); const i = m.indexOf('[heap]'); return i<0?0:Number(/Rss:\s+(\d+)/.exec(m.slice(i))[1])*1024; })() });
  if (process.env.SNAP) { const v8 = await import('node:v8'); v8.writeHeapSnapshot('/tmp/e-heap-' + Date.now() + '.heapsnapshot'); } });
