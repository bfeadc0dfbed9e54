import { once } from 'node:events';
import { copyFile, cp, mkdir, readdir, rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConnectedChannel, CreatedKey, Problem } from '@concierge/contract';
import { eventually, temporaryDirectory } from '@concierge/testing';
import { keyOf } from '@concierge/turn';
import type { z } from 'zod';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const keySecret = 'k'.repeat(64);
const path = '/api/channels/whatsapp';
const whatsapp = { phoneNumberId: '1065', accessToken: 'EAAB-token', verifyToken: 'verify-me', appSecret: 'b0a1-app-secret' };

let cleanUp: AsyncDisposableStack;
let near: TestGateway;
/** On another machine, whose mount goes on showing the tenant's files as they were, until `showFiles`. */
let far: TestGateway;
let tenant: TestTenant;

/** What one machine wrote, the other one sees: file by file, each as it was or as it is. */
async function showFiles(): Promise<void> {
  for (const store of ['keys', 'channels']) {
    const [from, to] = [toStore(near, store), toStore(far, store)];
    await mkdir(to, { recursive: true });
    const names = await readdir(from);
    for (const name of names) {
      await copyFile(join(from, name), join(to, '.next'));
      await rename(join(to, '.next'), join(to, name));
    }
    for (const name of await readdir(to)) if (!names.includes(name)) await unlink(join(to, name));
  }
}

function toStore({ dataDir }: TestGateway, store: string): string {
  return join(dataDir, 'tenants', tenant.id, store);
}

async function awaitListeners(count: number): Promise<void> {
  const redis = near.redis.client();
  await eventually(async () => Number((await redis.pubsub('NUMSUB', keyOf.recordChanges))[1]) === count);
  redis.disconnect();
}

beforeEach(async () => {
  cleanUp = new AsyncDisposableStack();
  const secrets = { keySecret, secretsKey: keySecret };
  near = cleanUp.use(await TestGateway.start(secrets));
  tenant = await near.tenant();
  const folder = cleanUp.use(await temporaryDirectory());
  await mkdir(join(folder.path, 'tenants'));
  await cp(tenant.scope.root, join(folder.path, 'tenants', tenant.id), { recursive: true });
  far = cleanUp.use(await TestGateway.start({ ...secrets, dataDir: folder.path, redisUrl: near.redis.url }));
  await awaitListeners(2);
});
afterEach(async () => cleanUp[Symbol.asyncDispose]());

async function createKey(): Promise<z.output<typeof CreatedKey>> {
  const answer = await near.ask(tenant.admin, '/api/keys', { method: 'POST', body: { scopes: ['read'] } });
  return CreatedKey.parse(await answer.json());
}

async function readCode(answer: Response): Promise<string> {
  return answer.ok ? 'ok' : Problem.parse(await answer.json()).code;
}

async function askWith(gateway: TestGateway, key: string): Promise<string> {
  return readCode(await gateway.ask(key, '/api/sessions'));
}

async function connect(phoneNumberId: string): Promise<void> {
  const answer = await near.ask(tenant.admin, path, { method: 'PUT', body: { ...whatsapp, phoneNumberId } });
  expect([200, 201]).toContain(answer.status);
}

/** Resolves when the machines have been told, too: Redis may tell them after the answer. */
async function connectAndTell(phoneNumberId: string): Promise<void> {
  const listener = near.redis.client();
  await listener.subscribe(keyOf.recordChanges);
  const told = once(listener, 'message');
  await connect(phoneNumberId);
  await told;
  listener.disconnect();
}

async function readNumber(): Promise<string | undefined> {
  const answer = await far.ask(tenant.admin, path);
  return answer.ok ? ConnectedChannel.parse(await answer.json()).identifiers['phoneNumberId'] : readCode(answer);
}

describe('where files are shown as they were', () => {
  it('a key that another machine has revoked is refused, and the one in its place is served', async () => {
    const key = await createKey();
    await showFiles();
    expect(await askWith(far, key.key)).toBe('ok');
    const next = CreatedKey.parse(await (await near.ask(tenant.admin, `/api/keys/${key.id}/rotate`, { method: 'POST' })).json());
    await eventually(async () => (await askWith(far, key.key)) === 'revoked_key');
    expect(await askWith(far, tenant.admin)).toBe('ok');
    await showFiles();
    expect([await askWith(far, key.key), await askWith(far, next.key)]).toEqual(['revoked_key', 'ok']);
  });

  it('a channel that another machine has disconnected is not there, until it is connected again', async () => {
    await connect('1065');
    await showFiles();
    expect(await readNumber()).toBe('1065');
    expect((await near.ask(tenant.admin, path, { method: 'DELETE' })).status).toBe(204);
    await eventually(async () => (await readNumber()) === 'not_found');
    await connect('2065');
    await showFiles();
    expect(await readNumber()).toBe('2065');
  });

  it('a channel that another machine has connected anew is waited for', async () => {
    await connect('1065');
    await showFiles();
    expect(await readNumber()).toBe('1065');
    await connectAndTell('2065');
    const read = readNumber();
    await showFiles();
    expect(await read).toBe('2065');
  });

  it('files alone decide without Redis', async () => {
    const key = await createKey();
    await showFiles();
    expect(await askWith(far, key.key)).toBe('ok');
    await near.redis.kill();
    expect((await near.ask(tenant.admin, `/api/keys/${key.id}`, { method: 'DELETE' })).status).toBe(204);
    await showFiles();
    await eventually(async () => (await askWith(far, key.key)) === 'revoked_key');
    expect(await askWith(near, key.key)).toBe('revoked_key');
    await near.redis.start();
    for (const gateway of [near, far]) await eventually(async () => (await gateway.ask(undefined, '/readyz')).status === 200);
  });
});
