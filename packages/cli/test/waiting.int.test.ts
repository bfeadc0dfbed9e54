import { AcceptedTurn } from '@concierge/contract';
import { connectRedis } from '@concierge/runtime';
import { silentLog as log, TestRedis } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { Lanes } from '@concierge/turn';
import { describe, expect, it } from '@jest/globals';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
const turnId = `t_${'a'.repeat(32)}`;

setUpOnce(async (stack) => {
  const server = stack.use(await TestRedis.start());
  concierge = stack.use(await CommandLine.over({ REDIS_URL: server.url }));
  const redis = connectRedis({ url: server.url, role: 'worker', log });
  stack.defer(() => redis.disconnect());
  const lanes = new Lanes(redis);
  const { runId } = await lanes.readiness();
  await lanes.beginRestore('test');
  await lanes.open({ runId, restore: 'test', generation: 1 });
  const turn = AcceptedTurn.parse({
    version: 1,
    turnId,
    tenantId: 'acme',
    sessionId: 'b'.repeat(32),
    acceptedAtMs: Date.now(),
    origin: 'api',
    agent: 'cs',
    authority: 'cs',
    channel: 'web',
    sender: 'ann',
    text: 'Hello',
    attachments: [],
    requestHash: 'h',
    keyId: null,
  });
  await lanes.enqueue(turn, { busy: 'queue', found: 'accepted' });
});

describe('concierge waiting', () => {
  it('lists who waits, for what and since when', async () => {
    expect(await concierge.json('waiting')).toMatchObject([
      { tenantId: 'acme', turnId, reason: 'no_worker', why: 'It may run, and no worker takes turns.', turns: 1 },
    ]);
    const { out } = await concierge.run('waiting', '--tenant', 'acme');
    expect(out).toMatch(/^WAITED +TENANT +AGENT +TURNS +FIRST TURN +WHY +STARTS WHEN\n/u);
    expect(out).toContain(turnId);
    expect((await concierge.run('waiting', '--tenant', 'other')).out).toBe('No turn waits.\n');
  });
});

describe('a command that needs Redis', () => {
  it('is refused in a line where the services spread tenants over other slots', async () => {
    const { code, out, err } = await concierge.runWith({ REDIS_SLOTS: '3' }, 'waiting');
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toContain('REDIS_SLOTS: must be 1, as it is for the services (given: 3)');
  });
});

describe('concierge worker list', () => {
  it('fails where no worker takes turns', async () => {
    expect(await concierge.run('worker', 'list')).toMatchObject({ code: 1, out: 'No worker lives.\n' });
  });
});

describe('concierge top', () => {
  it('is printed once where it is piped', async () => {
    const { code, out } = await concierge.run('top');
    expect(code).toBe(0);
    expect(out).toContain('no worker takes turns');
    expect(out).toContain(turnId);
    expect(out).not.toContain('\u001B');
    expect(await concierge.json('top')).toMatchObject({ running: 0, slots: 0, waiting: [{ turnId }] });
  });
});
