import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;

beforeEach(async () => {
  concierge = await CommandLine.over();
  await concierge.json('tenant', 'create', 'acme');
});
afterEach(async () => await concierge[Symbol.asyncDispose]());

const outbound = {
  kind: 'message',
  channel: 'channel_c',
  to: '4242',
  sessionId: '0123456789abcdef0123456789abcdef',
  text: 'Your parcel is here, and it is heavier than anything that you have ever ordered from us.',
  agent: 'admin',
  turnId: 't_1',
} as const;

/** One that waits, and one that a provider has refused. */
async function fill(): Promise<{ waiting: string; refused: string }> {
  return await concierge.withScope('acme', async ({ outbox }) => {
    const refused = (await outbox.accept({ ...outbound, callId: 'c1' })).message.id;
    const at = new Date().toISOString();
    const problem = { code: '403', message: 'Forbidden: bot was blocked by the user' };
    const delivery = await outbox.record(refused, [
      { kind: 'parts', at, parts: [{ text: 'Hi', plain: 'Hi' }] },
      { kind: 'result', at, part: 0, try: 1, outcome: 'recipient_failed', problem },
    ]);
    if (delivery !== undefined) await outbox.end(delivery);
    return { refused, waiting: (await outbox.accept({ ...outbound, callId: 'c2' })).message.id };
  });
}

describe('concierge delivery', () => {
  it('lists messages with what became of them, page by page', async () => {
    expect((await concierge.run('delivery', 'list', 'acme')).out).toBe('No messages.\n');
    const { waiting, refused } = await fill();
    const { out } = await concierge.run('delivery', 'list', 'acme');
    expect(out).toMatch(
      new RegExp(String.raw`^${refused} +failed +403 +telegram +4242 +message .*Your parcel is here, and it is heavier t…$`, 'mu'),
    );
    expect(out.indexOf(waiting)).toBeLessThan(out.indexOf(refused));
    expect(await concierge.json('delivery', 'list', 'acme', '--status', 'failed')).toMatchObject({ deliveries: [{ id: refused }] });
    const first = await concierge.json('delivery', 'list', 'acme', '--limit', '1');
    expect(first).toMatchObject({ deliveries: [{ id: waiting }] });
    const { nextCursor } = z.object({ nextCursor: z.string() }).parse(first);
    expect(await concierge.json('delivery', 'list', 'acme', '--cursor', nextCursor)).toMatchObject({
      deliveries: [{ id: refused }],
      nextCursor: null,
    });
    expect((await concierge.run('delivery', 'list', 'acme', '--limit', '0')).err).toContain('--limit must be 1 to 100');
  });

  it('sums up what of all tenants has not arrived, and sends dead letters again after a dry run, on record', async () => {
    expect((await concierge.run('delivery', 'stuck')).out).toBe('Everything has arrived.\n');
    const { refused } = await fill();
    expect(await concierge.json('delivery', 'stuck', '--tenant', 'acme')).toMatchObject([
      { tenantId: 'acme', channel: 'channel_c', waiting: 1, retrying: 0, dead: 1, lastDead: { id: refused, problem: '403' } },
    ]);
    expect((await concierge.run('delivery', 'stuck')).out).toMatch(
      new RegExp(String.raw`^acme +channel_c +1 +0 +1 .*${refused} +403$`, 'mu'),
    );
    const all = ['delivery', 'redrive-all'];
    expect(await concierge.json(...all, '--channel', 'slack')).toMatchObject({ dryRun: true, deliveries: 0 });
    expect((await concierge.run(...all, '--channel', 'telegram')).out).toMatch(/^1 dead letters would be sent again .*\n.*\nacme +1/u);
    expect((await concierge.run(...all, '--channel', 'pigeon')).code).toBe(1);
    expect(await concierge.json('delivery', 'stuck')).toMatchObject([{ dead: 1 }]);
    expect(await concierge.json(...all, '--yes')).toMatchObject({ dryRun: false, deliveries: 1, tenants: { acme: 1 } });
    expect(await concierge.json('delivery', 'stuck')).toMatchObject([{ waiting: 2, dead: 0, lastDead: null }]);
    expect((await concierge.run('audit', 'acme')).out).toMatch(new RegExp(String.raw`delivery\.redrive +acme +${refused}`, 'u'));
  });

  it('shows one with its parts, and sends it again', async () => {
    const { refused } = await fill();
    const { out } = await concierge.run('delivery', 'show', 'acme', refused);
    expect(out).toContain('failed (403: Forbidden: bot was blocked by the user)');
    expect(out).toMatch(/^1 +failed +1 /mu);
    expect((await concierge.run('delivery', 'redrive', 'acme', refused)).out).toContain('is on its way again');
    expect(await concierge.json('delivery', 'show', 'acme', refused)).toMatchObject({
      state: 'waiting',
      parts: [{ state: 'waiting', tries: 1 }],
    });
    expect((await concierge.run('delivery', 'redrive', 'acme', refused)).err).toContain('on its way already');
    expect((await concierge.run('delivery', 'show', 'acme', 'm_0')).err).toContain('acme has no message m_0');
  });
});
