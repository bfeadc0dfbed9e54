import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { TestGateway } from './test-gateway.ts';

let gateway: TestGateway;

beforeEach(async () => {
  gateway = await TestGateway.start();
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
});

/** Ids of the services' connections that do not subscribe, the oldest first: the gateway connects before its worker. */
async function listConnections(redis: ReturnType<TestGateway['redis']['client']>): Promise<string[]> {
  const list = String(await redis.call('CLIENT', 'LIST', 'TYPE', 'normal'));
  return [...list.matchAll(/^id=(\d+) .* name= /gmu)].map(([, id = '']) => id).toSorted((one, other) => Number(one) - Number(other));
}

describe('a connection to Redis that is cut under a request', () => {
  it.each<[string, string, object]>([
    ['a chat', '/api/admin', { message: 'hello' }],
    ['a completion', '/v1/chat/completions', { model: 'cs', messages: [{ role: 'user', content: 'hello' }] }],
  ])('costs the client of %s another try at most', async (_name, path, body) => {
    const tenant = await gateway.tenant();
    const redis = gateway.redis.client();
    await redis.client('SETNAME', 'test');
    const [oldest = ''] = await listConnections(redis);
    let killed: unknown;
    gateway.script = async () => {
      killed ??= await redis.call('CLIENT', 'KILL', 'ID', oldest);
    };
    const answer = await gateway.ask(tenant.admin, path, { method: 'POST', body, headers: { Accept: 'application/json' } });
    expect(await eventually(() => killed)).toBe(1);
    redis.disconnect();
    await eventually(async () => (await gateway.ask(undefined, '/readyz')).status === 200);
    expect([200, 503]).toContain(answer.status);
    expect(answer.headers.has('retry-after')).toBe(answer.status === 503);
  });
});
