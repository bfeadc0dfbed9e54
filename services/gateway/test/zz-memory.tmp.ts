import { request, Agent } from 'node:http';
import { TestGateway } from './zz-gateway.tmp.ts';
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
// gateway in a process of its own
const g = await TestGateway.start({ maxConnections: 20000, maxStreamsPerKey: 20000 });
const tenant = await g.tenant();
g.script = async ({ signal }) => new Promise((r) => signal.addEventListener('abort', () => r()));
const first = await g.ask(tenant.admin, '/api/admin', { method: 'POST', body: { message: 'x' } });
const turns = JSON.parse(await (await g.ask(tenant.admin, '/api/turns')).text());
const turnId = turns[0].id;
const { scope } = tenant;
const cfg = { dataDir: g.dataDir, redis: g.redis.url };
const child = spawn(process.execPath, ['--conditions=@concierge/source', '--expose-gc', new URL('./zz-child.tmp.mjs', import.meta.url).pathname], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'], env: { ...process.env, NODE_OPTIONS: '', DATA_DIR: g.dataDir, REDIS_URL: g.redis.url, KEY_SECRET: (g as any).keySecret, GATEWAY_PORT: '0', GATEWAY_HOST: '127.0.0.1', LOG_LEVEL: 'warn' } });
const port: number = await new Promise((r) => child.on('message', (m: any) => m.port && r(m.port)));
const measure = async () => { const p = new Promise<any>((r) => child.once('message', r)); child.send('measure'); return p; };
const agent = new Agent({ maxSockets: Infinity });
const reqs: any[] = [];
async function open(n: number) {
  for (let i = 0; i < n; i += 50) {
    await Promise.all(Array.from({ length: 50 }, () => new Promise<void>((resolve, reject) => {
      const r = request({ host: '127.0.0.1', port, path: `/api/turns/${turnId}/events`, headers: { 'X-API-Key': tenant.admin }, agent }, (res) => { res.on('data', () => resolve()); res.on('error', () => undefined); });
      r.on('error', reject); r.end(); reqs.push(r);
    })));
  }
}
await open(500);
for (const r of reqs.splice(0)) r.destroy();
await new Promise((r) => setTimeout(r, 1000));
const before = await measure();
await open(5000);
await new Promise((r) => setTimeout(r, 2000));
const after = await measure();
console.log(before, after);
for (const k of ['rss', 'heapUsed', 'external']) console.log(k, Math.round((after[k] - before[k]) / 5000), 'bytes per stream');
child.kill('SIGKILL');
for (const r of reqs) r.destroy();
await g[Symbol.asyncDispose]();
process.exit(0);
