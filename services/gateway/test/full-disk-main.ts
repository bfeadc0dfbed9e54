import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@concierge/testing';
import { TestGateway } from './test-gateway.ts';

// A gateway whose data folder, the first argument, is on a small file system. Prints what it answers while it is full
// and afterwards.

const [, , dataDir = ''] = process.argv;

async function statusOf(response: Promise<Response>): Promise<readonly (number | string | null)[]> {
  const { status, headers } = await response;
  return [status, headers.get('retry-after')];
}

async function fill(file: string): Promise<void> {
  for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    const more = 'x'.repeat(bytes);
    while (
      await writeFile(file, more, { flag: 'a' }).then(
        () => true,
        () => false,
      )
    );
  }
}

await using gateway = await TestGateway.start({ dataDir });
const tenant = await gateway.tenant();
const chat = { method: 'POST', body: { message: 'hello' }, headers: { Accept: 'application/json' } };
const openAi = { method: 'POST', body: { model: 'cs', messages: [{ role: 'user', content: 'hello' }] } };
const ask = {
  chat: async () => statusOf(gateway.ask(tenant.admin, '/api/admin', chat)),
  completion: async () => statusOf(gateway.ask(tenant.cs, '/v1/chat/completions', openAi)),
  file: async () =>
    statusOf(
      gateway.ask(tenant.admin, '/api/files/MEMORY.md', {
        method: 'PUT',
        body: 'x'.repeat(9000),
        headers: { 'Content-Type': 'text/plain' },
      }),
    ),
  ready: async () => statusOf(gateway.ask(undefined, '/readyz')),
};
const filler = join(dataDir, 'filler');
await fill(filler);
await eventually(async () => (await ask.ready())[0] === 503);
const full = { chat: await ask.chat(), completion: await ask.completion(), file: await ask.file() };
await rm(filler);
await eventually(async () => (await ask.ready())[0] === 200);
const after = { chat: await ask.chat(), completion: await ask.completion(), file: await ask.file() };
process.stdout.write(JSON.stringify({ full, after }));
