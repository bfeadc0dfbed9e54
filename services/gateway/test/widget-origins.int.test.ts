import { beforeEach, describe, expect, it } from '@jest/globals';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway, type TestTenant } from './test-gateway.ts';
import { readCode, enableWidget, newVisitor, shop, type WidgetVisitor } from './widget-visitor.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let key: string;
let visitor: WidgetVisitor;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  tenant = await gateway.tenant();
  key = await enableWidget(tenant);
  visitor = newVisitor(gateway, key);
});

describe('a page of another origin', () => {
  const paths = ['/widget/settings', '/widget/conversation'];

  it.each([
    ['none', undefined],
    ['null', 'null'],
    ['another site', 'https://evil.example'],
    ['a site that begins alike', 'https://shop.example.evil.example'],
    ['a subdomain', 'https://www.shop.example'],
    ['plain http', 'http://shop.example'],
    ['another port', 'https://shop.example:444'],
    ['capitals', 'https://SHOP.example'],
  ])('is refused when it is %s', async (_what, Origin) => {
    for (const path of paths) {
      const response = await visitor.ask(path, { own: { Origin } });
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
      expect(await readCode(response)).toEqual([403, 'origin_refused']);
    }
    expect(await readCode(await visitor.say('x', { Origin }))).toEqual([403, 'origin_refused']);
  });

  it('may read every answer when its owner allows it, errors too, and never with credentials', async () => {
    const answers = [
      await visitor.ask('/widget/settings'),
      await visitor.say('x'),
      await visitor.ask('/widget/turns/nope/events'),
      await visitor.say(''),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 400]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(shop);
      expect(headers.get('vary')).toContain('Origin');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    }
  });

  it('may be any port of the visitor’s own machine where that is allowed', async () => {
    await enableWidget(tenant, { origins: ['http://localhost:*', 'https://two.example'] });
    const readStatus = async (Origin: string): Promise<number> => (await visitor.ask('/widget/settings', { own: { Origin } })).status;
    const wanted = ['http://localhost', 'http://localhost:8080', 'https://two.example'];
    expect(await Promise.all(wanted.map(readStatus))).toEqual([200, 200, 200]);
    const others = ['http://localhost.evil.example', 'http://localhost:80:80', 'https://localhost:1', 'http://localhost:x', shop];
    expect(await Promise.all(others.map(readStatus))).toEqual([403, 403, 403, 403, 403]);
  });

  it('may use it nowhere as long as no origin is set', async () => {
    await enableWidget(tenant, { origins: [] });
    expect(await readCode(await visitor.ask('/widget/settings'))).toEqual([403, 'origin_refused']);
  });

  async function preflight(path: string, Origin: string): Promise<Response> {
    return await gateway.ask(undefined, path, { method: 'OPTIONS', headers: { Origin, 'Access-Control-Request-Method': 'POST' } });
  }

  it('is allowed beforehand what it may, by the key in the address', async () => {
    const good = await preflight(`/widget/messages?key=${key}`, shop);
    expect(good.status).toBe(204);
    expect(good.headers.get('access-control-allow-origin')).toBe(shop);
    expect(good.headers.get('access-control-allow-methods')).toContain('POST');
    expect(good.headers.get('access-control-allow-headers')).toContain('X-Widget-Visitor');
    const own = { Authorization: undefined };
    expect((await visitor.ask(`/widget/settings?key=${key}`, { own })).status).toBe(200);
  });

  it('is allowed nothing beforehand with another origin, another key or none, and nowhere else', async () => {
    const refused = [
      await preflight(`/widget/messages?key=${key}`, 'https://evil.example'),
      await preflight(`/widget/messages?key=ck_pub_nobody_${'0'.repeat(32)}`, shop),
      await preflight('/widget/messages', shop),
      await preflight(`/api/cs?key=${key}`, shop),
    ];
    for (const { status, headers } of refused) {
      expect(status).toBe(204);
      expect(headers.get('access-control-allow-origin')).toBeNull();
    }
  });
});
