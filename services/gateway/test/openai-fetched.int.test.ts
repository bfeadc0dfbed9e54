import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { AcceptedTurn } from '@concierge/contract';
import { failure, openAiClient, sayItBackTo, tenantWithAgents } from './openai-client.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64');

/** What lies at the addresses that callers write. */
const site: Readonly<Record<string, { readonly status: number; readonly body: Buffer; readonly location?: string }>> = {
  '/a.png': { status: 200, body: png },
  '/moved': { status: 302, body: Buffer.alloc(0), location: '/a.png' },
  '/inside': { status: 302, body: Buffer.alloc(0), location: 'http://127.0.0.1:1/secret' },
  '/empty': { status: 200, body: Buffer.alloc(0) },
  '/large': { status: 200, body: Buffer.alloc(10 * 1024 * 1024 + 1, 'x') },
  '/page.zip': { status: 200, body: Buffer.from('504b0304140000000800', 'hex') },
};

let server: Server;
let host: string;
let gateway: TestGateway;
let tenant: TestTenant;
let accepted: AcceptedTurn[];
let asked: string[];

beforeAll(async () => {
  server = createServer(({ url = '' }, response) => {
    asked.push(url);
    const { status, body, location } = site[url] ?? { status: 404, body: Buffer.from('nothing here') };
    response.writeHead(status, location === undefined ? {} : { Location: location }).end(body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  host = `127.0.0.1:${String(typeof address === 'object' ? address?.port : 0)}`;
  gateway = await TestGateway.start({ outboundAllow: [host] });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  server.close();
});
beforeEach(async () => {
  accepted = [];
  asked = [];
  gateway.script = sayItBackTo(accepted);
  tenant = await tenantWithAgents(gateway);
});

async function look(model: string, urls: readonly string[], options: { headers?: Record<string, string> } = {}): Promise<string> {
  const content = urls.map((url) => ({ type: 'image_url' as const, image_url: { url } }));
  const { chat } = openAiClient(gateway, tenant.admin);
  return (await chat.completions.create({ model, messages: [{ role: 'user', content }] }, options)).id;
}

describe('an image by its address', () => {
  it('is fetched and attached, redirects followed', async () => {
    await look('admin', [`http://${host}/a.png`, `http://${host}/moved`]);
    expect(accepted[0]?.attachments).toMatchObject([
      { name: 'image-1', type: 'image/png', size: png.length },
      { name: 'image-2', type: 'image/png', size: png.length },
    ]);
    expect(asked).toEqual(['/a.png', '/moved', '/a.png']);
  });

  it('comes to responses too', async () => {
    const content = [{ type: 'input_image', detail: 'auto', image_url: `http://${host}/a.png` }] as const;
    await openAiClient(gateway, tenant.admin).responses.create({ model: 'admin', input: [{ role: 'user', content: [...content] }] });
    expect(accepted[0]?.attachments).toMatchObject([{ type: 'image/png' }]);
  });

  it.each([
    ['that is not there', '/nowhere'],
    ['that leads inside', '/inside'],
    ['of nothing', '/empty'],
    ['of too much', '/large'],
  ])('%s is refused by the place where it stands', async (_name, path) => {
    const error = await failure(look('admin', [`http://${host}${path}`]));
    expect(error).toMatchObject({ status: 400, code: 'invalid_request', param: 'messages[0].content[0].image_url.url' });
    expect(accepted).toEqual([]);
  });

  it('is refused when it is something else', async () => {
    expect(await failure(look('admin', [`http://${host}/page.zip`]))).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    expect(accepted).toEqual([]);
  });

  it('is fetched from public places alone where strangers ask, and never without TLS', async () => {
    for (const model of ['cs', 'guide']) expect(await failure(look(model, [`http://${host}/a.png`]))).toMatchObject({ status: 400 });
    expect(await failure(look('admin', ['http://example.com/a.png']))).toMatchObject({ status: 400 });
    expect(await failure(look('admin', ['https://169.254.169.254/a.png']))).toMatchObject({ status: 400 });
    expect(asked).toEqual([]);
    expect(accepted).toEqual([]);
  });

  it('makes a repeated request the same by its address', async () => {
    const headers = { 'Idempotency-Key': 'f1' };
    const url = `http://${host}/a.png`;
    expect(await look('admin', [url], { headers })).toBe(await look('admin', [url], { headers }));
    expect(await failure(look('admin', [`http://${host}/moved`], { headers }))).toMatchObject({ status: 422 });
  });
});
