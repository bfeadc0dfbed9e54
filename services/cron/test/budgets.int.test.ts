import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import type { ScheduleRun } from '@concierge/contract';
import { deriveHeartbeatId } from '../src/schedules/heartbeat.ts';
import type { ScheduleClock } from '../src/schedules/schedule-clock.ts';
import { TestCron } from './test-cron.ts';

let fixture: TestCron;
let replicas: ScheduleClock[];

setUpEach(async (stack) => {
  fixture = stack.use(await TestCron.start());
  replicas = await fixture.replicas(2);
  await (await fixture.scope()).updateSettings({ limits: { tokensPerDay: 1000 } });
});

async function look(): Promise<void> {
  await Promise.all(replicas.map(async (replica) => replica.scan()));
  await Promise.all(replicas.map(async (replica) => replica.fire()));
}

async function lookAt(time: string): Promise<void> {
  fixture.at(`2027-03-${time}Z`);
  await look();
}

async function listRuns(id: string): Promise<ScheduleRun[]> {
  return (await fixture.scope()).schedules.runs.list(id, 20);
}

describe('a tenant whose budget is spent to the share of schedules', () => {
  it('has its due runs skipped, with the reason, until the next day', async () => {
    const schedule = await fixture.schedule({});
    await fixture.spend(899);
    await lookAt('01T01:00:00');
    expect(await fixture.answerAll()).toBe(1);
    await fixture.spend(1);
    await fixture.redis.flush();
    await lookAt('01T02:00:00');
    expect(await fixture.answerAll()).toBe(0);
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran done', '02:00 skipped']);
    expect((await listRuns(schedule.id))[0]?.reason).toMatch(/^The day's budget of 1000 tokens .* is spent to 90 per cent/u);
    await lookAt('02T01:00:00');
    expect(await fixture.answerAll()).toBe(1);
  });

  it('has no heartbeat', async () => {
    const scope = await fixture.scope();
    await writeFile(join(scope.root, 'HEARTBEAT.md'), 'Look after the inbox.');
    await scope.updateSettings({ heartbeat: { every: '10m' } });
    await fixture.spend(900);
    for (let minute = 0; minute < 11; minute += 1) {
      fixture.nowMs += 60_000;
      await look();
    }
    expect(await fixture.answerAll()).toBe(0);
    expect((await listRuns(deriveHeartbeatId('acme')))[0]).toMatchObject({ outcome: 'skipped', reason: expect.stringContaining('budget') });
  });

  it('runs what its owner asks for', async () => {
    const schedule = await fixture.schedule({});
    await fixture.spend(950);
    await (await fixture.scope()).schedules.run(schedule.id);
    await lookAt('01T00:10:00');
    expect(await fixture.answerAll()).toBe(1);
  });
});
