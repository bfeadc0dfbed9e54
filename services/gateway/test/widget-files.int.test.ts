import { beforeEach, describe, expect, it } from '@jest/globals';
import { limits, UploadRef, WidgetBody } from '@concierge/contract';
import { signSenderToken } from '@concierge/tenant';
import { RateLimits, type TurnRun } from '@concierge/turn';
import { setUpOnce } from '@concierge/testing/set-up';
import { sayItBack } from './scripted-turns.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';
import { enableWidget, newVisitor, readCode, readConversation, readReply, signedVisitor, type WidgetVisitor } from './widget-visitor.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let key: string;
let visitor: WidgetVisitor;

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  gateway.script = sayItBack;
  tenant = await gateway.tenant();
  key = await enableWidget(tenant);
  visitor = newVisitor(gateway, key);
});

async function upload(who: WidgetVisitor, ...files: readonly (readonly [name: string, content: string | Uint8Array])[]): Promise<Response> {
  return who.ask('/widget/uploads', { method: 'POST', files: files.map(([name, content]) => ({ name, bytes: Buffer.from(content) })) });
}

async function say(who: WidgetVisitor, message: string, attachments: readonly string[]): Promise<Response> {
  const own = { 'Content-Type': 'application/json', Accept: 'application/json' };
  return who.ask('/widget/messages', { method: 'POST', body: JSON.stringify({ message, attachments }), own });
}

describe('a file of a visitor', () => {
  it('goes with a message, and its name is shown again: nothing else of it', async () => {
    const { id } = UploadRef.parse(await (await upload(visitor, ['../a note.txt', 'remember'])).json());
    let attachments: TurnRun['turn']['attachments'] = [];
    gateway.script = async (run) => {
      ({ attachments } = run.turn);
      await sayItBack(run);
    };
    await readReply(await say(visitor, 'see', [id]));
    const { messages } = await readConversation(visitor);
    expect(messages).toMatchObject([
      { from: 'visitor', text: 'see', files: ['a note.txt'] },
      { from: 'agent', files: [] },
    ]);
    expect(JSON.stringify(messages)).not.toContain(id);
    expect(attachments).toMatchObject([{ id, name: 'a note.txt', type: 'text/plain' }]);
  });

  it.each([
    ['of another kind', [['a.zip', Uint8Array.from([0x50, 0x4b, 3, 4, 20, 0, 0, 0, 8, 0])]], [415, 'unsupported_media_type']],
    ['that is too large', [['a.txt', new Uint8Array(limits.uploadMaxBytes + 1).fill(97)]], [413, 'too_large']],
    ['that is empty', [['a.txt', '']], [400, 'invalid_request']],
    [
      'beside another',
      [
        ['a.txt', 'a'],
        ['b.txt', 'b'],
      ],
      [400, 'invalid_request'],
    ],
  ] as const)('%s is refused', async (_what, files, refusal) => {
    expect(await readCode(await upload(visitor, ...files))).toEqual(refusal);
  });

  it('of another visitor, or of the owner, is refused with its message as one that there is not', async () => {
    const theirs = UploadRef.parse(await (await upload(newVisitor(gateway, key), ['a.txt', 'theirs'])).json());
    const owners = await tenant.scope.uploads.save({ name: 'b.txt', type: 'text/plain', bytes: Buffer.from('the owner’s') });
    for (const { id } of [theirs, owners]) expect(await readCode(await say(visitor, 'see', [id]))).toEqual([400, 'invalid_request']);
  });

  it('that nobody has sent is refused with its message', async () => {
    expect(await readCode(await say(visitor, 'see', [`u_${'0'.repeat(32)}`]))).toEqual([400, 'invalid_request']);
  });

  it('is refused where the owner allows none', async () => {
    await tenant.scope.widget.put(WidgetBody.parse({ enabled: true, origins: ['https://shop.example'], display: { files: 'refused' } }));
    expect(await readCode(await upload(visitor, ['a.txt', 'a']))).toEqual([400, 'invalid_request']);
  });

  it('is one of so many in an hour, and those of one visitor do not use up those of another', async () => {
    for (let sent = 0; sent < limits.widgetFilesPerVisitorHour; sent += 1) expect((await upload(visitor, ['a.txt', 'a'])).status).toBe(201);
    const refused = await upload(visitor, ['a.txt', 'a']);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect(await readCode(refused)).toEqual([429, 'rate_limited']);
    expect((await upload(newVisitor(gateway, key), ['a.txt', 'a'])).status).toBe(201);
  });

  it('is so many bytes of those that a visitor may send in a day, and none of them when it is refused', async () => {
    const largest = new Uint8Array(limits.uploadMaxBytes).fill(97);
    const whole = limits.widgetBytesPerVisitorDay / limits.uploadMaxBytes;
    for (let sent = 1; sent < whole; sent += 1) expect((await upload(visitor, ['a.txt', largest])).status).toBe(201);
    expect((await upload(visitor, ['a.txt', largest.subarray(1)])).status).toBe(201);
    expect(await readCode(await upload(visitor, ['a.bin', Uint8Array.from([0])]))).toEqual([415, 'unsupported_media_type']);
    const refused = await upload(visitor, ['a.txt', 'aa']);
    expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/u);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(23 * 3600);
    expect(await readCode(refused)).toEqual([429, 'rate_limited']);
    // The last byte is there for a file that fits.
    expect((await upload(visitor, ['a.txt', 'a'])).status).toBe(201);
    expect(await readCode(await upload(visitor, ['a.txt', 'a']))).toEqual([429, 'rate_limited']);
    expect(await tenant.scope.uploads.listBefore(Date.now() + 60_000, 100)).toHaveLength(whole + 1);
    expect((await upload(newVisitor(gateway, key), ['a.txt', 'aa'])).status).toBe(201);
  });

  it('is so many bytes of those that all visitors of a tenant may send, and of no other tenant', async () => {
    const redis = gateway.redis.client();
    const used = { limit: limits.widgetBytesPerDay, windowSeconds: 24 * 3600, weight: limits.widgetBytesPerDay - 3 };
    await new RateLimits(redis).take(`${tenant.id}:widget-bytes`, used);
    redis.disconnect();
    expect((await upload(visitor, ['a.txt', 'aa'])).status).toBe(201);
    expect(await readCode(await upload(newVisitor(gateway, key), ['a.txt', 'aa']))).toEqual([429, 'rate_limited']);
    expect((await upload(newVisitor(gateway, key), ['a.txt', 'a'])).status).toBe(201);
    const other = newVisitor(gateway, await enableWidget(await gateway.tenant()));
    expect((await upload(other, ['a.txt', 'aa'])).status).toBe(201);
  });

  const { widgetUnsignedBytesPerDay: bytes, widgetUnsignedFilesPerHour: files } = limits;
  it.each([
    ['bytes', { limit: bytes, windowSeconds: 24 * 3600, weight: bytes - 3 }, 1],
    ['files', { limit: files, windowSeconds: 3600 }, files - 1],
  ] as const)('leaves %s to those with a token, however many visitors one browser without a token is', async (what, window, times) => {
    const redis = gateway.redis.client();
    for (let taken = 0; taken < times; taken += 1) await new RateLimits(redis).take(`${tenant.id}:widget-${what}-unsigned`, window);
    redis.disconnect();
    // Without a secret all visitors have no token, and the room is theirs.
    for (let sent = 0; sent < 2; sent += 1) expect((await upload(newVisitor(gateway, key), ['a.txt', 'aa'])).status).toBe(201);
    const secret = await tenant.scope.widget.rotateSecret();
    expect((await upload(newVisitor(gateway, key), ['a.txt', 'aa'])).status).toBe(201);
    expect(await readCode(await upload(newVisitor(gateway, key), ['a.txt', 'aa']))).toEqual([429, 'rate_limited']);
    const nowSeconds = Math.floor(Date.now() / 1000);
    const ann = signedVisitor(gateway, key, signSenderToken({ sub: 'ann', iat: nowSeconds, exp: nowSeconds + 600 }, secret));
    expect((await upload(ann, ['a.txt', 'aa'])).status).toBe(201);
  });
});
