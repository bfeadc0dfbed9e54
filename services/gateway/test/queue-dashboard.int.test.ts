import { describe, expect, it } from '@jest/globals';
import { routes } from '@concierge/contract';
import { z } from 'zod';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway } from './test-gateway.ts';

const path = routes.queues.path;
const Queues = z.object({
  queues: z.array(z.object({ name: z.string(), readOnlyMode: z.boolean(), counts: z.record(z.string(), z.number()) })),
});

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

async function queue(): Promise<z.infer<typeof Queues>['queues'][number] | undefined> {
  const response = await gateway.ask(undefined, `${path}/api/queues?activeQueue=turns`);
  expect(response.status).toBe(200);
  const { queues } = Queues.parse(await response.json());
  expect(queues.map(({ name }) => name)).toEqual(['turns', 'turns-1', 'turns-2', 'deliveries', 'events']);
  return queues[0];
}

describe('the queue dashboard', () => {
  it.each([path, `${path}/`, `${path}/queue/turns`])('is a page at %s that runs nothing from elsewhere', async (address) => {
    const response = await gateway.ask(undefined, address);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(response.headers.get('x-powered-by')).toBeNull();
    const policy = response.headers.get('content-security-policy');
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*/u);
    const html = await response.text();
    expect(html).toContain(`<base href="${path}/" />`);
    expect(html).not.toMatch(/(?:href|src)="https?:/u);
    const [, script] = /<script defer src="(?<src>static\/[^"]+)"/u.exec(html) ?? [];
    const asset = await gateway.ask(undefined, `${path}/${String(script)}`);
    expect(asset.status).toBe(200);
    expect(asset.headers.get('content-type')).toMatch(/^text\/javascript/u);
  });

  it('lists the queue of turns with what has gone through it', async () => {
    const tenant = await gateway.tenant();
    const before = (await queue())?.counts['completed'] ?? 0;
    await (await gateway.ask(tenant.admin, '/api/admin', { method: 'POST', body: { message: 'x' } })).text();
    const after = await queue();
    expect(after).toMatchObject({ name: 'turns', readOnlyMode: true });
    const { completed = 0, active = 0 } = after?.counts ?? {};
    expect(completed + active).toBeGreaterThan(before);
  });

  it.each([
    ['PUT', '/api/queues/turns/retry/failed'],
    ['PUT', '/api/queues/turns/clean/completed'],
    ['PUT', '/api/queues/turns/pause'],
    ['PUT', '/api/queues/pause'],
    ['PUT', '/api/queues/turns/obliterate'],
    ['POST', '/api/queues/turns/add'],
    ['POST', ''],
  ])('refuses to change anything: %s %s', async (method, below) => {
    const response = await gateway.ask(undefined, `${path}${below}`, { method, body: {} });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD, OPTIONS');
    expect(await response.json()).toMatchObject({ code: 'method_not_allowed' });
  });

  it.each(['/nothing/here', '/api/queues/none/metrics', '/static/../package.json', '/static/%2e%2e%2f%2e%2e%2fpackage.json'])(
    'has nothing at %s',
    async (below) => {
      expect((await gateway.ask(undefined, `${path}${below}`)).status).toBe(404);
    },
  );

  it.each(['', '/', '/queue/turns', '/api/queues', '/static/favicon-32x32.png'])(
    'hides itself%s from a request that comes from elsewhere',
    async (below) => {
      const response = await gateway.ask(undefined, `${path}${below}`, { headers: { 'X-Forwarded-For': '203.0.113.7' } });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ code: 'not_found' });
    },
  );

  it('wants the operators\u2019 token where one is set', async () => {
    const opsToken = 'a-token-of-operators';
    await using guarded = await TestGateway.start({ opsToken });
    const tenant = await guarded.tenant();
    for (const below of ['', '/api/queues']) {
      const ask = async (token?: string): Promise<Response> =>
        guarded.ask(undefined, `${path}${below}`, token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } });
      expect(await (await ask()).json()).toMatchObject({ code: 'missing_key', status: 401 });
      expect(await (await ask(tenant.admin)).json()).toMatchObject({ code: 'invalid_key', status: 401 });
      expect((await ask(opsToken)).status).toBe(200);
    }
  });
});
