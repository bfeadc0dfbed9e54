import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { RawClient } from './raw-client.ts';
import { TestGateway } from './test-gateway.ts';

let gateway: TestGateway;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});

const closed = async ({ socket }: RawClient): Promise<boolean> => eventually(() => socket.closed || socket.readableEnded);

/** Takes connections until the gateway takes no more. */
async function occupy(where: TestGateway): Promise<Disposable & { readonly all: readonly RawClient[] }> {
  const open = new DisposableStack();
  const all: RawClient[] = [];
  for (
    let client = open.use(await RawClient.open(where));
    (await answersTo(client)) === 200;
    client = open.use(await RawClient.open(where))
  ) {
    client.socket.pause();
    all.push(client);
  }
  return { all, [Symbol.dispose]: () => open.dispose() };
}

async function answersTo(client: RawClient): Promise<number | undefined> {
  client.send('GET /livez HTTP/1.1', 'Host: localhost', '', '');
  await eventually(() => client.status !== undefined || client.socket.readableEnded || client.socket.closed);
  return client.status;
}

/** Opens a new connection: one that was kept alive would get in anyway. */
async function getsIn(where: TestGateway): Promise<boolean> {
  using client = await RawClient.open(where);
  return (await answersTo(client)) === 200;
}

const MIB = 1024 * 1024;

/** What is kept alive is kept for longer than a test lasts. */
const few = { maxConnections: 4, keepAliveMs: 120_000 };

describe('connections whose client neither reads nor closes', () => {
  it('are released after a broken request, so that a neighbour gets in', async () => {
    await using small = await TestGateway.start(few);
    using clients = await occupy(small);
    for (const client of clients.all) client.send('this is no request', '', '');
    expect(await eventually(async () => getsIn(small))).toBe(true);
  });

  it('are released after an answer that closes, so that a neighbour gets in', async () => {
    await using small = await TestGateway.start(few);
    using clients = await occupy(small);
    for (const client of clients.all) client.announce('/webhook/telegram/nobody', 1024 * MIB);
    expect(await eventually(async () => getsIn(small))).toBe(true);
  });

  it('are released while an answer is larger than what the network takes', async () => {
    await using small = await TestGateway.start({ ...few, unreadAnswerMs: 200 });
    using clients = await occupy(small);
    const asked = ['GET /docs/scalar.js HTTP/1.1', 'Host: localhost', '', ''].join('\r\n');
    for (const client of clients.all) client.send(asked.repeat(8));
    expect(await eventually(async () => getsIn(small))).toBe(true);
  });
});

describe('a body that is too large', () => {
  it.each<[string, string, number]>([
    ['a webhook', '/webhook/telegram/nobody', 401],
    ['a chat message', '/api/admin', 413],
    ['a completion', '/v1/chat/completions', 413],
    ['an upload', '/api/uploads', 413],
  ])('of %s is refused by what its headers say, before any of it was sent', async (_name, path, status) => {
    const { admin } = await gateway.tenant();
    using client = await RawClient.open(gateway);
    client.announce(path, 1024 * MIB, { 'X-API-Key': admin });
    expect(await eventually(() => client.status)).toBe(status);
    expect(client.seen).toMatch(/^connection: close$/imu);
    await closed(client);
  });

  it('is refused at the cap when it does not state its length, and the rest is not waited for', async () => {
    const { admin } = await gateway.tenant();
    using client = await RawClient.open(gateway);
    const headers = ['Host: localhost', `X-API-Key: ${admin}`, 'Content-Type: application/json', 'Transfer-Encoding: chunked'];
    client.send('POST /api/admin HTTP/1.1', ...headers, '', '');
    const chunk = 'x'.repeat(64 * 1024);
    const sending = setInterval(() => client.send(chunk.length.toString(16), chunk, ''), 1);
    expect(await eventually(() => client.status)).toBe(413);
    await closed(client);
    clearInterval(sending);
  });

  it('is not drained either when the request is refused for another reason', async () => {
    using client = await RawClient.open(gateway);
    client.announce('/api/admin', limits.jsonBodyMaxBytes + 1);
    expect(await eventually(() => client.status)).toBe(401);
    await closed(client);
  });
});

describe('clients without a key that hold bodies', () => {
  it('get their share of memory and no more, and callers with keys are answered meanwhile', async () => {
    const tenant = await gateway.tenant();
    const largest = limits.webhookBodyMaxBytes;
    const fitting = limits.bodiesOfPeerMaxBytes / largest;
    using all = new DisposableStack();
    const clients = await Promise.all(Array.from({ length: fitting + 4 }, async () => all.use(await RawClient.open(gateway))));
    for (const client of clients) client.announce('/webhook/telegram/nobody', largest);
    expect(await eventually(() => clients.filter(({ status }) => status === 503).length === 4)).toBe(true);
    const answer = await gateway.ask(tenant.admin, '/api/admin', {
      method: 'POST',
      body: { message: 'hello' },
      headers: { Accept: 'application/json' },
    });
    expect(answer.status).toBe(200);
    all.dispose();
    using next = await RawClient.open(gateway);
    next.announce('/webhook/telegram/nobody', 2);
    next.send('{}');
    expect(await eventually(() => next.status)).toBe(401);
  });
});

describe('a request with two names for where it goes', () => {
  it('is refused', async () => {
    using client = await RawClient.open(gateway);
    client.send('GET /livez HTTP/1.1', 'Host: localhost', 'Host: elsewhere.example', '', '');
    expect(await eventually(() => client.status)).toBe(400);
  });
});

describe('wide JSON', () => {
  const zeros = (count: number): string => `[${'0,'.repeat(count - 1)}0]`;

  it.each<[string, string, (list: string) => string]>([
    ['chat', '/api/cs', (list) => `{"message":"x","attachments":${list}}`],
    ['completions', '/v1/chat/completions', (list) => `{"model":"cs","messages":${list}}`],
    ['responses', '/v1/responses', (list) => `{"model":"cs","input":${list}}`],
    ['the parts of one message', '/v1/responses', (list) => `{"model":"cs","input":[{"role":"user","content":${list}}]}`],
    ['MCP', '/mcp', (list) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask_cs","arguments":{"message":${list}}}}`],
  ])('of %s is refused before a schema reads it', async (_name, path, bodyWith) => {
    const { cs } = await gateway.tenant();
    const headers = { Accept: 'application/json, text/event-stream' };
    const response = await gateway.ask(cs, path, { method: 'POST', body: bodyWith(zeros(200_000)), headers });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(`more than ${String(limits.jsonMaxValues)} values`);
  });

  it('names the first problems of a request and no more', async () => {
    const { admin } = await gateway.tenant();
    const body = { cs: { maxTurns: -1 } };
    const agents = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`a${String(index)}`, body.cs]));
    const response = await gateway.ask(admin, '/api/tenant', { method: 'PATCH', body: { agents } });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ errors: { length: limits.invalidFieldsMax } });
  });
});
