import { copyFile, readdir } from 'node:fs/promises';
import { request as ask } from 'node:http';
import { join } from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { describe, expect, it } from '@jest/globals';
import { routes, type Route } from '@concierge/contract';
import { setUpOnce } from '@concierge/testing/set-up';
import { z } from 'zod';
import { examples, textExample } from '../src/docs/examples.ts';
import { enableWidget, newVisitor } from './widget-visitor.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const opsToken = 'an-operators-token-of-these-tests';
let gateway: TestGateway;
let tenant: TestTenant;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start({ opsToken }));
  tenant = await gateway.tenant();
});

interface RawAnswer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

/** As it comes: fetch and supertest decompress. */
async function getRaw(path: string, headers: Record<string, string> = {}): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = ask(`${gateway.url}${path}`, { headers }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.once('end', () => resolve({ status: answer.statusCode, headers: answer.headers, bytes: Buffer.concat(pieces) }));
      answer.once('error', reject);
    });
    sent.once('error', reject);
    sent.end();
  });
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Properties and parameters of a part of the document that nothing says the meaning of. */
function listUndescribed(node: unknown, place: string): string[] {
  if (!isObject(node)) return [];
  const own = isObject(node['properties']) ? Object.entries(node['properties']) : [];
  const undescribed = own
    .filter(([, schema]) => isObject(schema) && schema['description'] === undefined)
    .map(([name]) => `${place}.${name}`);
  const isParameter = typeof node['in'] === 'string' && typeof node['name'] === 'string';
  const schema = isObject(node['schema']) ? node['schema'] : {};
  const bare =
    isParameter && node['description'] === undefined && schema['description'] === undefined ? [`${place}?${String(node['name'])}`] : [];
  return [...undescribed, ...bare, ...Object.entries(node).flatMap(([, value]) => listUndescribed(value, place))];
}

/** Properties with a default that their schema does not require, by where they stand. */
function listLeftOutDefaults(node: unknown, place: string): string[] {
  if (!isObject(node)) return [];
  const required = Array.isArray(node['required']) ? node['required'] : [];
  const own = isObject(node['properties']) ? Object.entries(node['properties']) : [];
  const leftOut = own.filter(([name, schema]) => isObject(schema) && 'default' in schema && !required.includes(name));
  const below = Object.entries(node).filter(([key]) => !key.startsWith('example'));
  return [
    ...leftOut.map(([name]) => `${place}.${name}`),
    ...below.flatMap(([key, value]) => listLeftOutDefaults(value, `${place}/${key}`)),
  ];
}

describe('the documentation', () => {
  it('begins with a first call, streaming and errors', async () => {
    const text = await (await gateway.ask(undefined, '/openapi.json')).text();
    const { info } = z.object({ info: z.object({ description: z.string() }) }).parse(JSON.parse(text));
    for (const heading of ['## A first call', '## Streaming', '## Errors']) expect(info.description).toContain(heading);
  });

  it('says what every property and parameter means', async () => {
    const text = await (await gateway.ask(undefined, '/openapi.json')).text();
    const document = z
      .object({
        paths: z.record(z.string(), z.record(z.string(), z.unknown())),
        components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
      })
      .parse(JSON.parse(text));
    const operations = Object.entries(document.paths).flatMap(([path, all]) =>
      Object.entries(all).map(([method, operation]) => [`${method} ${path}`, operation] as const),
    );
    const found = [...Object.entries(document.components.schemas), ...operations].flatMap(([name, node]) => listUndescribed(node, name));
    expect([...new Set(found)]).toEqual([]);
  });

  it('names its licence, and no default of a property that a request may leave out, which client types would require', async () => {
    const document: unknown = await (await gateway.ask(undefined, '/openapi.json')).json();
    expect(document).toMatchObject({ info: { license: { name: 'MIT', identifier: 'MIT' } } });
    expect(listLeftOutDefaults(document, '')).toEqual([]);
    // They are said in words instead.
    expect([...JSON.stringify(document).matchAll(/ Default: /gu)].length).toBeGreaterThan(20);
  });

  it('has the key preselected on its page, whose script comes compressed and is kept', async () => {
    const page = await gateway.ask(undefined, '/docs');
    expect(await page.text()).toMatch(/"preferredSecurityScheme":\s*"apiKey"/u);
    const script = await getRaw('/docs/scalar.js', { 'Accept-Encoding': 'br' });
    expect(script.headers).toMatchObject({ 'content-encoding': 'br', 'cache-control': 'public, max-age=86400' });
    expect(script.bytes.length).toBeLessThan(1_500_000);
    const again = await getRaw('/docs/scalar.js', { 'Accept-Encoding': 'br', 'If-None-Match': String(script.headers['etag']) });
    expect(again).toMatchObject({ status: 304, bytes: Buffer.alloc(0) });
  });

  it('is asked about with its version, and sent again only when that has changed', async () => {
    const first = await getRaw('/openapi.json', { 'Accept-Encoding': 'br' });
    expect(JSON.parse(brotliDecompressSync(first.bytes).toString())).toMatchObject({ openapi: expect.stringMatching(/^3\.1\./u) });
    const again = await getRaw('/openapi.json', { 'Accept-Encoding': 'br', 'If-None-Match': String(first.headers['etag']) });
    expect(again).toMatchObject({ status: 304, bytes: Buffer.alloc(0) });
  });
});

const withExample = Object.values<Route>(routes).filter(({ body }) => body?.kind === 'json');
const exampleOf = new Map<string, unknown>(Object.entries(examples));

/** What the route's path names, made before where it must be there. */
async function preparePath(route: Route): Promise<Record<string, string>> {
  const created = async (path: string, body: unknown): Promise<string> =>
    z.object({ id: z.string() }).parse(await (await gateway.ask(tenant.admin, path, { method: 'POST', body })).json()).id;
  if (route.id === 'restoreFile') return { path: await keepExampleVersion() };
  const names = { agent: 'cs', channel: 'telegram', provider: 'openai', name: 'shop', tenant: tenant.id };
  if (route.path.startsWith('/api/cron/')) return { id: await created('/api/cron', examples.createSchedule) };
  if (route.path.startsWith('/api/event-endpoints/')) return { id: await created('/api/event-endpoints', examples.createEventEndpoint) };
  if (!route.path.startsWith('/api/sessions/')) return names;
  const isOwners = route.id === 'forkSession' || route.id === 'labelSession';
  const [asked, body] = isOwners ? (['/api/admin', examples.chatWithAdmin] as const) : (['/api/cs', examples.chatWithCs] as const);
  const reply = await gateway.ask(tenant.admin, asked, { method: 'POST', body, headers: json });
  const { contact_id: id, turnId } = z.object({ contact_id: z.string(), turnId: z.string() }).parse(await reply.json());
  if (route.id === 'answerAsPerson')
    await gateway.ask(tenant.admin, `/api/sessions/${id}/handoff`, { method: 'POST', body: examples.takeOver });
  return { id, turnId };
}

/** A version of a file under the id that the example names. */
async function keepExampleVersion(): Promise<string> {
  const path = 'SOUL.md';
  await tenant.scope.fileHistory.write(path, { text: textExample, by: { kind: 'operator' } });
  const folder = join(tenant.scope.root, 'settings', 'history');
  const [file = ''] = await readdir(folder);
  const [version = ''] = await readdir(join(folder, file));
  await copyFile(join(folder, file, version), join(folder, file, `${examples.restoreFile.id}.json`));
  return path;
}

const json = { Accept: 'application/json' };

/** As it stands there, but for the id of a turn that there is. */
function buildBody({ id }: Route, { turnId }: Record<string, string>): unknown {
  return id === 'forkSession' ? { ...examples.forkSession, turnId } : exampleOf.get(id);
}

async function sendExample(route: Route): Promise<Response> {
  const named = await preparePath(route);
  const path = route.path.replaceAll(/\{(?<name>\w+)\}/gu, (_all, name: string) => named[name] ?? '');
  const init = { method: route.method.toUpperCase(), body: buildBody(route, named), headers: json };
  if (route.auth === 'visitor') {
    const visitor = newVisitor(gateway, await enableWidget(tenant));
    return visitor.ask(path, { ...init, body: JSON.stringify(init.body), own: { ...json, 'Content-Type': 'application/json' } });
  }
  if (route.auth === 'operator') {
    return gateway.ask(undefined, path, { ...init, headers: { ...json, Authorization: `Bearer ${opsToken}` } });
  }
  return gateway.ask(tenant.admin, path, init);
}

describe('the documentation of a route with a body', () => {
  it.each(withExample.map((route) => [route.id, route] as const))('has an example for %s that can be sent as it is', async (_id, route) => {
    const answer = await sendExample(route);
    const refused = answer.ok ? '' : await answer.text();
    expect(refused).toBe('');
  });

  it('has one for text, too', async () => {
    expect(
      (await gateway.ask(tenant.admin, '/api/files/SOUL.md', { method: 'PUT', body: textExample, headers: text })).status,
    ).toBeLessThan(300);
  });
});

const text = { 'Content-Type': 'text/plain' };

describe('an answer', () => {
  it.each(['br', 'gzip'])('comes compressed to a client that takes %s, and a small one as it is', async (encoding) => {
    for (let made = 0; made < 6; made += 1) await tenant.scope.keys.create({ scopes: ['read'] }, ['admin']);
    const headers = { 'X-API-Key': tenant.admin, 'Accept-Encoding': encoding };
    const list = await getRaw('/api/keys', headers);
    expect(list.headers).toMatchObject({ 'content-encoding': encoding, vary: expect.stringContaining('Accept-Encoding') });
    const small = await getRaw('/livez', headers);
    expect(small.headers['content-encoding']).toBeUndefined();
    const plain = await getRaw('/api/keys', { 'X-API-Key': tenant.admin });
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(list.bytes.length).toBeLessThan(plain.bytes.length);
  });

  it('that is a stream never is', async () => {
    const stream = await gateway.open(tenant.admin, '/api/admin', {
      method: 'POST',
      body: { message: 'Hello' },
      headers: { 'Accept-Encoding': 'br, gzip', Accept: 'text/event-stream' },
    });
    expect(stream.headers.get('content-type')).toContain('text/event-stream');
    expect(stream.headers.get('content-encoding')).toBeNull();
    expect(await stream.text()).toContain('event: done');
  });
});
