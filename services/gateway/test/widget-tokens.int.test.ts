import { createHash, createHmac } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { signSenderToken } from '@concierge/tenant';
import { setUpOnce } from '@concierge/testing/set-up';
import { TestGateway, type TestTenant } from './test-gateway.ts';
import { readCode, readConversation, enableWidget, newVisitor, readReply, signedVisitor, type WidgetVisitor } from './widget-visitor.ts';

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

const nowSeconds = (): number => Math.floor(Date.now() / 1000);

describe('a sender token', () => {
  let secret: string;
  const claims = (more: object = {}): { sub: string; iat: number; exp: number } => ({
    sub: 'ann',
    iat: nowSeconds(),
    exp: nowSeconds() + 600,
    ...more,
  });

  beforeEach(async () => {
    secret = await tenant.scope.widget.rotateSecret();
  });

  /** Signed without the tenant's secret. */
  function forge(payload: unknown, { by = secret, hash = 'sha256' } = {}): string {
    const first = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)).toString('base64url');
    return `${first}.${createHmac(hash, by).update(first).digest('base64url')}`;
  }

  it('identifies a user on every device, and gives no other caller access', async () => {
    const token = signSenderToken({ ...claims(), name: 'Ann' }, secret);
    await readReply(await signedVisitor(gateway, key, token).say('hello'));
    const elsewhere = signedVisitor(gateway, key, signSenderToken(claims({ exp: nowSeconds() + 60 }), secret));
    expect((await readConversation(elsewhere)).messages).toHaveLength(2);
    expect((await readConversation(signedVisitor(gateway, key, signSenderToken(claims({ sub: 'bob' }), secret)))).messages).toEqual([]);
    expect(await tenant.scope.contacts.find('user:ann')).toMatchObject({ displayName: 'Ann' });
  });

  it('can be required, and then no visitor comes without', async () => {
    await enableWidget(tenant, { requireSenderToken: true });
    expect(await readCode(await visitor.say('x'))).toEqual([401, 'invalid_signature']);
    await readReply(await signedVisitor(gateway, key, forge(claims())).say('x'));
    const look = await visitor.ask('/widget/settings', { own: { 'X-Widget-Visitor': undefined } });
    expect(await look.json()).toMatchObject({ requireSenderToken: true, appearance: { title: 'Chat' } });
  });

  it.each<readonly [string, () => string]>([
    ['another secret', () => forge(claims(), { by: 'wsec_other' })],
    ['an empty secret', () => forge(claims(), { by: '' })],
    ['the publishable key', () => forge(claims(), { by: key })],
    ['another hash', () => forge(claims(), { hash: 'sha512' })],
    ['another user in a signed token', () => `${forge(claims({ sub: 'bob' })).split('.')[0] ?? ''}.${forge(claims()).split('.')[1] ?? ''}`],
    ['no signature', () => `${forge(claims()).split('.')[0] ?? ''}.`],
    ['no signature and no dot', () => forge(claims()).split('.')[0] ?? ''],
    ['an algorithm of its own', () => forge(claims({ alg: 'none' }))],
    ['the form of a JWT', () => `${Buffer.from('{"alg":"none"}').toString('base64url')}.${forge(claims())}`],
    ['padding', () => `${forge(claims())}=`],
    [
      'base64 instead of base64url',
      () =>
        forge(claims({ sub: '?>?>?>' }))
          .replaceAll('-', '+')
          .replaceAll('_', '/')
          .replace('.', '.'),
    ],
    ['no end', () => forge({ sub: 'ann', iat: nowSeconds() })],
    ['an end long ago', () => forge(claims({ iat: nowSeconds() - 700, exp: nowSeconds() - 100 }))],
    ['an end too far away', () => forge(claims({ exp: nowSeconds() + limits.widgetTokenMaxSeconds + 10 }))],
    ['a beginning in the future', () => forge(claims({ iat: nowSeconds() + 300, exp: nowSeconds() + 900 }))],
    ['an end before its beginning', () => forge(claims({ exp: nowSeconds() - 1 }))],
    ['an end in words', () => forge(claims({ exp: 'never' }))],
    ['an empty name of a user', () => forge(claims({ sub: '' }))],
    ['a user who is no text', () => forge(claims({ sub: { toString: 'ann' } }))],
    ['no JSON', () => forge('ann')],
    ['a list', () => forge([claims()])],
  ])('with %s is refused', async (_what, make) => {
    expect(await readCode(await signedVisitor(gateway, key, make()).say('x'))).toEqual([401, 'invalid_signature']);
  });

  it('may be a minute late, for the sake of clocks', async () => {
    const late = forge(claims({ iat: nowSeconds() - 600, exp: nowSeconds() - 30 }));
    const early = forge(claims({ iat: nowSeconds() + 30 }));
    for (const token of [late, early]) expect((await signedVisitor(gateway, key, token).say('x')).status).toBe(200);
  });

  it('stops with its secret, and is good for no other tenant', async () => {
    const token = forge(claims());
    const other = await gateway.tenant();
    await other.scope.widget.rotateSecret();
    expect((await signedVisitor(gateway, await enableWidget(other), token).say('x')).status).toBe(401);
    await tenant.scope.widget.rotateSecret();
    expect((await signedVisitor(gateway, key, token).say('x')).status).toBe(401);
  });

  it('never leads to a visitor’s conversation', async () => {
    const kept = 'b2'.repeat(16);
    await readReply(await visitor.say('mine', { 'X-Widget-Visitor': kept }));
    const sender = `visitor:${createHash('sha256').update(kept).digest('hex')}`;
    for (const sub of [sender, kept])
      expect((await readConversation(signedVisitor(gateway, key, forge(claims({ sub }))))).messages).toEqual([]);
  });
});
