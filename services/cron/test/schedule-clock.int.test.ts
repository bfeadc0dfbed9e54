import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import type { ScheduleClock } from '../src/schedules/schedule-clock.ts';
import { TestCron } from './test-cron.ts';

let fixture: TestCron;
let replica: ScheduleClock;

setUpEach(async (stack) => {
  fixture = stack.use(await TestCron.start());
  replica = await fixture.replica();
});

async function lookAt(time: string): Promise<void> {
  fixture.at(`2027-03-01T${time}Z`);
  await replica.scan();
  await replica.fire();
}

describe('a schedule', () => {
  it('that is made while Redis takes no writes fires once it does', async () => {
    await lookAt('00:00:00');
    const schedule = await fixture.schedule({});
    await fixture.redis.fill();
    await expect(replica.scan()).rejects.toThrow('OOM');
    await fixture.redis.hasRoom();
    await lookAt('01:00:00');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran waiting']);
  });

  it('that is made in the second which a killed Redis loses fires at its time', async () => {
    await lookAt('00:00:00');
    const written = await fixture.redis.written();
    const schedule = await fixture.schedule({});
    await lookAt('00:00:01');
    await fixture.redis.losePower(written);
    await lookAt('01:00:00');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran waiting']);
  });

  it('of a tenant does not wait for another whose files cannot be looked at', async () => {
    const { root } = await fixture.tenants.create('broken');
    await rm(join(root, 'tenant.json'));
    await symlink('tenant.json', join(root, 'tenant.json'));
    const schedule = await fixture.schedule({});
    await lookAt('00:00:00');
    await lookAt('01:00:00');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran waiting']);
  });

  it('that is asked for often between two of its times decides none of them again', async () => {
    const schedule = await fixture.schedule({ schedule: { every: '6h' } });
    for (const time of ['00:00:00', '06:00:00']) await lookAt(time);
    await fixture.answerAll();
    await lookAt('06:00:10');
    const { runs } = (await fixture.scope()).schedules;
    for (let asked = 0; asked <= limits.scheduleRunsKept; asked += 1) {
      fixture.nowMs += 1000;
      const [id, scheduledAt] = [`n_${String(asked).padStart(32, '0')}`, new Date(fixture.nowMs).toISOString()];
      await runs.decide(schedule.id, { id, scheduledAt, trigger: 'manual', outcome: 'skipped', reason: 'asked' });
    }
    for (const time of ['07:00:00', '07:00:03', '07:00:06']) await lookAt(time);
    const listed = await runs.list(schedule.id, 2 * limits.scheduleRunsKept);
    expect(listed.filter(({ trigger }) => trigger !== 'manual')).toMatchObject([{ outcome: 'ran', turn: { status: 'done' } }]);
    expect(listed).toHaveLength(limits.scheduleRunsKept + 1);
  });

  it('whose owner was notified that it fails stays quiet for as long as was asked, whatever number of runs that is', async () => {
    const schedule = await fixture.schedule({ alert: { afterFailures: 1, cooldown: '1d' } });
    const { runs } = (await fixture.scope()).schedules;
    await lookAt('01:00:00');
    await fixture.answerAll({ error: 'The model is away.' });
    await lookAt('01:00:05');
    for (let asked = 0; asked <= limits.scheduleRunsKept; asked += 1) {
      fixture.nowMs += 1000;
      const [id, scheduledAt] = [`n_${String(asked).padStart(32, '0')}`, new Date(fixture.nowMs).toISOString()];
      await runs.decide(schedule.id, { id, scheduledAt, trigger: 'manual', outcome: 'skipped', reason: 'asked' });
    }
    await lookAt('02:00:00');
    await fixture.answerAll({ error: 'The model is away.' });
    await lookAt('02:00:05');
    const listed = await runs.list(schedule.id, 2 * limits.scheduleRunsKept);
    expect(listed.filter(({ trigger }) => trigger !== 'manual')).toMatchObject([
      { scheduledAt: '2027-03-01T02:00:00.000Z', turn: { status: 'failed' }, alertedAt: null },
      { scheduledAt: '2027-03-01T01:00:00.000Z', turn: { status: 'failed' }, alertedAt: '2027-03-01T01:00:05.000Z' },
    ]);
    expect(listed).toHaveLength(limits.scheduleRunsKept);
  });
});
