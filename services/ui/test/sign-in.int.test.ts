import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { Sealer, ServiceStack } from '@concierge/runtime/process';
import { silentLog, temporaryDirectory } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { readConfig, type Config } from '../src/config.ts';
import { SIGN_IN_HEADER, SignedIn } from '../src/signed-in.ts';
import { wire } from '../src/wire.ts';

const goodKey = 'ck_live_good';
const csKey = 'ck_live_cs';
const ours = { 'sec-fetch-site': 'same-origin' };

let cleanUp: AsyncDisposableStack;
let gatewayUrl: string;
/** What arrived at the gateway. */
let arrived: { readonly target: string; readonly headers: IncomingMessage['headers'] }[];

/** Knows two keys, one of them for cs alone. */
async function startGateway(stack: AsyncDisposableStack): Promise<string> {
  const server = createServer((request, response) => {
    arrived.push({ target: `${request.method ?? ''} ${request.url ?? ''}`, headers: request.headers });
    request.resume();
    const key = request.headers['x-api-key'];
    const code = key === goodKey ? undefined : key === csKey ? 'scope_required' : key === undefined ? 'missing_key' : 'invalid_key';
    if (code === undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
      return;
    }
    const status = code === 'scope_required' ? 403 : 401;
    const problem = { type: 'about:blank', title: code, status, detail: `no: ${code}`, code, requestId: 'r' };
    response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  stack.defer(async () => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${String(address.port)}`;
}

setUpEach(async (stack) => {
  cleanUp = stack;
  arrived = [];
  gatewayUrl = await startGateway(stack);
});

async function startConsole(changes: Partial<Config> = {}): Promise<string> {
  const folder = cleanUp.use(await temporaryDirectory()).path;
  const config = readConfig({ GATEWAY_URL: gatewayUrl, UI_PORT: '0', UI_HOST: '127.0.0.1', CONSOLE_SECRET: 'c'.repeat(32) });
  const stack = new ServiceStack();
  cleanUp.defer(async () => stack.stop(2000));
  const port = await wire({ ...config, ...changes }, { stack, log: silentLog }, folder);
  return `http://127.0.0.1:${String(port)}`;
}

async function signIn(url: string, body: unknown, headers: Readonly<Record<string, string>> = ours): Promise<Response> {
  return fetch(`${url}/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** The cookie as a browser sends it back. */
async function fetchCookie(url: string, key = goodKey): Promise<string> {
  return (await signIn(url, { key })).headers.get('set-cookie')?.split(';', 1)[0] ?? '';
}

const askForTurns = async (url: string, init: RequestInit): Promise<number> => (await fetch(`${url}/api/turns`, init)).status;

describe('the sign-in of an owner', () => {
  it('puts the key where no script can read it, for twelve hours', async () => {
    const url = await startConsole();
    const answer = await signIn(url, { key: goodKey });
    expect([answer.status, await answer.json()]).toEqual([200, { reach: 'tenant', id: expect.any(String) }]);
    const cookie = answer.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^concierge_key=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/u);
    expect(cookie).not.toContain(goodKey);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const secured = await signIn(url, { key: goodKey }, { ...ours, 'x-forwarded-proto': 'https' });
    expect(secured.headers.get('set-cookie')).toMatch(/; Secure$/u);
  });

  it('tells who is signed in, and what a key for cs alone can reach', async () => {
    const url = await startConsole();
    expect(await (await fetch(`${url}/signed-in`)).json()).toEqual({ reach: null, id: null });
    const cookie = await fetchCookie(url, csKey);
    expect(await (await fetch(`${url}/signed-in`, { headers: { cookie } })).json()).toEqual({ reach: 'cs', id: expect.any(String) });
  });

  it('names whose sign-in it is, so that a tab knows whose is what it keeps', async () => {
    const url = await startConsole();
    const enter = async (key: string): Promise<unknown> => SignedIn.parse(await (await signIn(url, { key })).json()).id;
    const find = async (key: string): Promise<unknown> => {
      const signedIn = await fetch(`${url}/signed-in`, { headers: { cookie: await fetchCookie(url, key) } });
      return SignedIn.parse(await signedIn.json()).id;
    };
    const id = await enter(goodKey);
    expect([await enter(goodKey), await find(goodKey)]).toEqual([id, id]);
    const other = await enter(csKey);
    expect(await find(csKey)).toBe(other);
    expect(other).not.toBe(id);
    expect(id).not.toContain(goodKey);
    // An older console gives none: nothing that a tab keeps is known to be of this sign-in.
    expect(SignedIn.parse({ reach: 'tenant' }).id).toBeNull();
  });

  it('refuses a key that the gateway refuses, and what is no key', async () => {
    const url = await startConsole();
    const refused = await signIn(url, { key: 'ck_live_bad' });
    expect([refused.status, refused.headers.get('set-cookie')]).toEqual([401, null]);
    expect(await refused.json()).toMatchObject({ code: 'invalid_key', detail: 'no: invalid_key' });
    // No header can carry it.
    const cut = await signIn(url, { key: 'ck_live_…' });
    expect([cut.status, await cut.json()]).toEqual([401, expect.objectContaining({ code: 'invalid_key' })]);
    for (const body of [{}, { key: '' }, { key: 'k', more: 1 }, []]) expect((await signIn(url, body)).status).toBe(400);
    const plain = await fetch(`${url}/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: `{"key":"${goodKey}"}`,
    });
    expect(plain.status).toBe(400);
  });

  it('says that the gateway cannot be reached', async () => {
    const url = await startConsole({ gatewayUrl: new URL('http://127.0.0.1:9') });
    const answer = await signIn(url, { key: goodKey });
    expect([answer.status, await answer.json()]).toEqual([503, expect.objectContaining({ code: 'overloaded' })]);
  });

  it('adds the key to what is forwarded, and keeps the cookie to itself', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    expect(await askForTurns(url, { headers: { cookie: `a=1; ${cookie}; b=2` } })).toBe(200);
    expect(arrived.at(-1)?.headers).toMatchObject({ 'x-api-key': goodKey, cookie: 'a=1; b=2' });
    expect(await askForTurns(url, { headers: { cookie } })).toBe(200);
    expect(arrived.at(-1)?.headers.cookie).toBeUndefined();
  });

  it('gives its key to no request that was begun with another sign-in', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    const begin = async (key: string): Promise<string> => SignedIn.parse(await (await signIn(url, { key })).json()).id ?? '';
    const ask = async (id: string): Promise<number> => askForTurns(url, { headers: { cookie, [SIGN_IN_HEADER]: id } });
    expect(await ask(await begin(goodKey))).toBe(200);
    expect(arrived.at(-1)?.headers).toMatchObject({ 'x-api-key': goodKey });
    expect(arrived.at(-1)?.headers[SIGN_IN_HEADER]).toBeUndefined();
    expect(await ask(await begin(csKey))).toBe(401);
    expect(arrived.at(-1)?.headers['x-api-key']).toBeUndefined();
    expect(arrived.at(-1)?.headers[SIGN_IN_HEADER]).toBeUndefined();
  });

  it('lets a key that a request brings along be the one that counts', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    expect(await askForTurns(url, { headers: { cookie, 'x-api-key': 'ck_live_other' } })).toBe(401);
    expect(arrived.at(-1)?.headers['x-api-key']).toBe('ck_live_other');
    await fetch(`${url}/api/turns`, { headers: { cookie, authorization: 'Bearer ck_live_other' } });
    expect(arrived.at(-1)?.headers['x-api-key']).toBeUndefined();
  });

  it('changes nothing for a page of another site', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    const change = async (headers: Readonly<Record<string, string>>): Promise<number> =>
      askForTurns(url, { method: 'POST', headers: { cookie, ...headers } });
    expect(await change(ours)).toBe(200);
    for (const site of ['cross-site', 'same-site', 'none']) expect(await change({ 'sec-fetch-site': site, origin: url })).toBe(401);
    // Plain HTTP from another machine: the browser names the origin alone.
    expect(await change({ origin: url })).toBe(200);
    expect(await change({ origin: 'http://evil.example' })).toBe(401);
    expect(await change({})).toBe(401);
  });

  it('ends with the time, with another secret, and with a changed cookie', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    const [name = '', value = ''] = cookie.split('=');
    expect(await askForTurns(url, { headers: { cookie: `${name}=${value.slice(0, -4)}AAAA` } })).toBe(401);
    expect(await askForTurns(url, { headers: { cookie: `${name}=v1...` } })).toBe(401);
    const sealer = new Sealer('c'.repeat(32), 'concierge console sign-in');
    const sealed = (untilMs: number): string => sealer.seal(name, JSON.stringify({ key: goodKey, reach: 'tenant', untilMs }));
    expect(await askForTurns(url, { headers: { cookie: `${name}=${sealed(Date.now() + 3_600_000)}` } })).toBe(200);
    expect(await askForTurns(url, { headers: { cookie: `${name}=${sealed(Date.now() - 1)}` } })).toBe(401);
    expect(await askForTurns(await startConsole({ secret: 'd'.repeat(32) }), { headers: { cookie } })).toBe(401);
    // Several consoles behind one address share the secret.
    expect(await askForTurns(await startConsole(), { headers: { cookie } })).toBe(200);
  });

  it('signs out, from its own pages alone', async () => {
    const url = await startConsole();
    const foreign = await fetch(`${url}/sign-out`, { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } });
    expect([foreign.status, foreign.headers.get('set-cookie')]).toEqual([400, null]);
    const answer = await fetch(`${url}/sign-out`, { method: 'POST', headers: ours });
    expect(answer.headers.get('set-cookie')).toMatch(/^concierge_key=; Path=\/; Max-Age=0; HttpOnly/u);
  });

  it('signs out no other sign-in than the one that a refused page names', async () => {
    const url = await startConsole();
    const cookie = await fetchCookie(url);
    const { id } = SignedIn.parse(await (await signIn(url, { key: csKey })).json());
    const signOut = async (named: string): Promise<Response> =>
      fetch(`${url}/sign-out`, { method: 'POST', headers: { ...ours, cookie, [SIGN_IN_HEADER]: named } });
    const late = await signOut(id ?? '');
    const found = SignedIn.parse(await late.json());
    expect([late.headers.get('set-cookie'), found.reach]).toEqual([null, 'tenant']);
    expect((await signOut(found.id ?? '')).headers.get('set-cookie')).toContain('Max-Age=0');
  });

  it('needs a secret in production', () => {
    expect(() => readConfig({ NODE_ENV: 'production' })).toThrow('CONSOLE_SECRET: is required in production');
    expect(() => readConfig({ CONSOLE_SECRET: 'short' })).toThrow('at least 32 characters');
  });
});
