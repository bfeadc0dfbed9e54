import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { Problem, errorCodes, chooseErrorShape, listErrors, routes, type Route } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { RawClient } from './raw-client.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
  tenant = await gateway.tenant();
});

// Endpoints of other protocols have separate tests for their errors.
const all = Object.values<Route>(routes).filter(({ path }) => chooseErrorShape(path) === 'problem');
const withKey = all.filter(({ auth }) => auth === 'key');
const ID = 'f'.repeat(32);

function buildPath(route: Route): string {
  return route.path.replaceAll(/\{\w+\}/gu, ID);
}

async function problem(response: Response): Promise<Problem> {
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  const found = Problem.parse(await response.json());
  expect(found.status).toBe(response.status);
  expect(found.status).toBe(errorCodes[found.code].status);
  expect(found.requestId).toBe(response.headers.get('x-request-id'));
  return found;
}

/** Sends bytes as they are and reads until the other side closes. */
async function raw(bytes: string): Promise<string> {
  const { hostname, port } = new URL(gateway.url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.end(bytes);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

describe('a connection on which no request has come for 15 s', () => {
  it('is closed without an answer where nothing was sent, and told so where a part was', async () => {
    using unused = await RawClient.open(gateway);
    using slow = await RawClient.open(gateway);
    slow.send('GET /livez HTTP/1.1', 'Host: local');
    await Promise.all([unused, slow].map(async ({ socket }) => once(socket, 'end')));
    expect(unused.seen).toBe('');
    expect(slow.status).toBe(408);
    expect(slow.seen).toContain('"code":"request_timeout"');
  });
});

describe('every route with a key', () => {
  it.each(withKey.map((route) => [route.id, route] as const))('%s asks for one', async (_id, route) => {
    const response = await gateway.ask(undefined, buildPath(route), { method: route.method.toUpperCase() });
    expect(await problem(response)).toMatchObject({ code: 'missing_key', status: 401 });
    expect(response.headers.get('www-authenticate')).toContain('Bearer');
  });

  it.each(pairs(false))('%s is refused to a key for %s', async (_id, scope, route) => {
    const response = await gateway.ask(tenant[scope], buildPath(route), { method: route.method.toUpperCase() });
    expect(await problem(response)).toMatchObject({ code: 'scope_required', status: 403 });
  });

  it.each(pairs(true))('%s answers a key for %s as it announces', async (_id, scope, route) => {
    const response = await gateway.open(tenant[scope], buildPath(route), { method: route.method.toUpperCase() });
    expect(await surprises(route, response)).toEqual([]);
  });

  it('lets read do nothing but GET, and admin everything', () => {
    for (const route of withKey) {
      expect(route.scopes).toContain('admin');
      expect(route.scopes.includes('read')).toBe(route.method === 'get');
    }
  });
});

type Scope = 'admin' | 'cs' | 'read';

/** Every route with every kind of key that may, or may not, use it. */
function pairs(allowed: boolean): (readonly [string, Scope, Route])[] {
  const scopes: readonly Scope[] = ['admin', 'cs', 'read'];
  return withKey.flatMap((route) =>
    scopes.filter((scope) => route.scopes.includes(scope) === allowed).map((scope) => [route.id, scope, route] as const),
  );
}

/** The parts of an answer that its route does not declare: its status, its code, its body. */
async function surprises(route: Route, response: Response): Promise<string[]> {
  const answer = route.answers[response.status];
  if (answer === undefined) {
    const { code } = await problem(response);
    return listErrors(route).includes(code) ? [] : [code];
  }
  if (answer.text === 'text/event-stream') {
    await response.body?.cancel();
    return [];
  }
  const text = await response.text();
  const issues = answer.json?.safeParse(JSON.parse(text)).error?.issues ?? [];
  return issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

describe('a path', () => {
  it.each(all.map((route) => [route.path] as const))('%s names what it can do', async (path) => {
    const methods = new Set(all.filter((route) => route.path === path).map(({ method }) => method.toUpperCase()));
    const response = await gateway.ask(undefined, path.replaceAll(/\{\w+\}/gu, ID), { method: 'LOCK' });
    expect(await problem(response)).toMatchObject({ code: 'method_not_allowed', status: 405 });
    const allow = (response.headers.get('allow') ?? '').split(', ');
    for (const method of methods) expect(allow).toContain(method);
    expect(allow.includes('PUT')).toBe(methods.has('PUT'));
  });

  it.each(['/', '/api', '/api/nope', '/api/sessions/', '/API/sessions', '/api/agents/', '/docs/x'])('%s is not there', async (path) => {
    expect(await problem(await gateway.ask(tenant.admin, path))).toMatchObject({ code: 'not_found', status: 404 });
  });

  it.each(['/api/sessions/%', '/api/files/%E0%A4%A', '/%c0%ae'])('%s that is no UTF-8 is refused', async (path) => {
    expect((await problem(await gateway.ask(tenant.admin, path))).status).toBeLessThan(500);
  });

  it('answers OPTIONS without opening itself to other origins', async () => {
    const response = await gateway.ask(undefined, '/api/cs', {
      method: 'OPTIONS',
      headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get('allow')).toBe('POST, OPTIONS');
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('answers HEAD as GET without the body', async () => {
    const response = await gateway.ask(tenant.admin, '/api/skills', { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  });
});

describe('a query', () => {
  it.each([
    '/api/sessions?limit=0',
    '/api/sessions?limit=101',
    '/api/sessions?limit=ten',
    '/api/sessions?limit=1e1',
    '/api/sessions?limit=5&limit=6',
    '/api/sessions?agent=root',
    '/api/sessions?limt=5',
    '/api/sessions?cursor=made-up',
    '/api/turns?status=asleep',
    '/api/turns?cursor=made-up',
    '/api/usage?from=yesterday',
    '/api/usage?from=2026-02-02&to=2026-02-01',
    '/api/files?path=../other',
    '/api/files?recursive=yes',
  ])('%s is refused', async (path) => {
    expect(await problem(await gateway.ask(tenant.admin, path))).toMatchObject({ code: 'invalid_request', status: 400 });
  });
});

describe('authentication', () => {
  it('takes the key as a bearer token too', async () => {
    const response = await gateway.ask(undefined, '/api/skills', { headers: { Authorization: `Bearer ${tenant.read}` } });
    expect(response.status).toBe(200);
  });

  it.each([
    ['a made-up key', { 'X-API-Key': 'ck_live_nonsense' }],
    ['two different keys', { 'X-API-Key': 'ck_live_a', Authorization: 'Bearer ck_live_b' }],
  ])('refuses %s', async (_name, headers: Record<string, string>) => {
    expect(await problem(await gateway.ask(undefined, '/api/skills', { headers }))).toMatchObject({ code: 'invalid_key', status: 401 });
  });

  it('refuses a suspended tenant with 403, and lets it in again afterwards', async () => {
    const other = await gateway.tenant();
    await gateway.tenants.setSuspended(other.id, true);
    expect(await problem(await gateway.ask(other.admin, '/api/skills'))).toMatchObject({ code: 'tenant_suspended', status: 403 });
    await gateway.tenants.setSuspended(other.id, false);
    expect((await gateway.ask(other.admin, '/api/skills')).status).toBe(200);
  });
});

describe('the rate limit of a preview tenant', () => {
  it('lets 200 requests through in an hour, counts bad ones too, and shows it in headers', async () => {
    const preview = await gateway.tenant('preview');
    const first = await gateway.ask(preview.read, '/api/skills');
    expect(first.headers.get('ratelimit-policy')).toBe('"hourly";q=200;w=3600');
    expect(first.headers.get('ratelimit')).toMatch(/^"hourly";r=199;t=\d+$/u);
    const bad = await gateway.ask(preview.admin, '/api/admin', { method: 'POST', body: {} });
    expect(bad.status).toBe(400);
    expect(bad.headers.get('ratelimit')).toMatch(/r=198/u);
    const rest = await Promise.all(Array.from({ length: 250 }, async () => (await gateway.ask(preview.cs, '/api/skills')).status));
    // A cs key may not list skills: what is refused for its scope has been counted.
    expect(rest.filter((status) => status === 403)).toHaveLength(198);
    expect(rest.filter((status) => status === 429)).toHaveLength(52);
    const limited = await gateway.ask(preview.read, '/api/skills');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(3000);
    expect(limited.headers.get('ratelimit')).toMatch(/^"hourly";r=0;t=\d+$/u);
    expect(await problem(limited)).toMatchObject({ code: 'rate_limited', status: 429 });
  });

  it('does not touch other tenants', async () => {
    expect((await gateway.ask(tenant.read, '/api/skills')).headers.get('ratelimit')).toBeNull();
  });
});

describe('HTTP itself', () => {
  it('keeps a sane request id and makes one otherwise', async () => {
    expect((await gateway.ask(undefined, '/livez', { headers: { 'X-Request-Id': 'trace-0001' } })).headers.get('x-request-id')).toBe(
      'trace-0001',
    );
    expect((await gateway.ask(undefined, '/livez')).headers.get('x-request-id')).toMatch(/^r_/u);
  });

  it('answers headers that are too large with a problem', async () => {
    const answer = await raw(`GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(40_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 431 /u);
    expect(answer).toContain('application/problem+json');
    expect(answer).toContain('"code":"headers_too_large"');
  });

  it('answers what is no HTTP with a problem', async () => {
    const answer = await raw('hello there\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 400 /u);
    expect(answer).toContain('"code":"invalid_request"');
  });

  it('sends headers that keep browsers from making anything of its answers', async () => {
    const { headers } = await gateway.ask(tenant.admin, '/api/skills');
    expect(headers.get('content-security-policy')).toBe("default-src 'none';frame-ancestors 'none'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('x-powered-by')).toBeNull();
  });
});

describe('webhooks', () => {
  it.each(['telegram', 'channel_a', 'unknown'])('refuse everything for %s in one and the same way', async (channel) => {
    for (const id of [tenant.id, 'nobody']) {
      for (const init of [{}, { method: 'POST', body: '{"update_id":1}' }, { method: 'POST', body: 'x'.repeat(5 * 1024 * 1024) }]) {
        const response = await gateway.ask(undefined, `/webhook/${channel}/${id}`, init);
        expect(await problem(response)).toMatchObject({ code: 'invalid_signature', status: 401 });
      }
    }
  });
});
