import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { deriveHeartbeatId, heartbeatToken } from '../src/schedules/heartbeat.ts';
import type { ScheduleClock } from '../src/schedules/schedule-clock.ts';
import { TestCron } from './test-cron.ts';

const id = deriveHeartbeatId('acme');
let fixture: TestCron;
let replicas: ScheduleClock[];

setUpEach(async (stack) => {
  fixture = stack.use(await TestCron.start());
  replicas = await fixture.replicas(2);
  const scope = await fixture.scope();
  await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
  await scope.events.endpoints.create({ url: 'https://example.com/heart', types: ['heartbeat.reported'] });
  await writeFile(join(scope.root, 'HEARTBEAT.md'), 'Look after the inbox.');
});

/** The next heartbeat, answered so by the agent. */
async function beat(reply: string): Promise<void> {
  for (let minute = 0; minute < 11; minute += 1) {
    fixture.nowMs += 60_000;
    await Promise.all(replicas.map(async (replica) => replica.scan()));
    await Promise.all(replicas.map(async (replica) => replica.fire()));
    await fixture.answerAll({ reply });
  }
}

async function sent(): Promise<(readonly [string, string])[]> {
  return [...new Map((await (await fixture.scope()).outbox.waiting()).map(({ to, text }) => [to, text] as const))];
}

describe('the answer of a heartbeat', () => {
  it('reaches the recipient of handoffs by default', async () => {
    const scope = await fixture.scope();
    await scope.updateSettings({ handoff: { notify: { channel: 'telegram', to: '9001' } }, heartbeat: { every: '10m' } });
    await beat('The inbox is full.');
    expect(await sent()).toEqual([['9001', 'The inbox is full.']]);
    expect((await scope.schedules.runs.list(id, 5)).find(({ delivery }) => delivery !== null)?.delivery).toMatchObject({ status: 'kept' });
  });

  it('goes to the recipient that tenant.json names', async () => {
    const scope = await fixture.scope();
    const deliver = { channel: 'telegram', to: '4242' };
    await scope.updateSettings({ handoff: { notify: { channel: 'telegram', to: '9001' } }, heartbeat: { every: '10m', deliver } });
    await beat('The inbox is full.');
    expect(await sent()).toEqual([['4242', 'The inbox is full.']]);
  });

  it('is an event with its text, also for an owner without a channel', async () => {
    const scope = await fixture.scope();
    await scope.updateSettings({ heartbeat: { every: '10m' } });
    await beat('The inbox is full.');
    const { items } = await scope.events.list({ limit: 10 });
    expect(items.at(-1)).toMatchObject({ type: 'heartbeat.reported', data: { tenant: 'acme', text: 'The inbox is full.' } });
    expect(await sent()).toEqual([]);
  });

  it('is kept from the owner when it is that nothing is to be done', async () => {
    const scope = await fixture.scope();
    await scope.updateSettings({ handoff: { notify: { channel: 'telegram', to: '9001' } }, heartbeat: { every: '10m' } });
    await beat(`${heartbeatToken}\n`);
    expect(await sent()).toEqual([]);
    expect((await scope.events.list({ limit: 10 })).items).toEqual([]);
  });
});
