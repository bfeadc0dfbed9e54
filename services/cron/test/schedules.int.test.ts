import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import type { AcceptedTurn } from '@concierge/contract';
import { toRunId } from '@concierge/tenant';
import { deriveHeartbeatId, readHeartbeat, heartbeatToken } from '../src/schedules/heartbeat.ts';
import type { ScheduleClock } from '../src/schedules/schedule-clock.ts';
import { TestCron } from './test-cron.ts';

let fixture: TestCron;
let replicas: ScheduleClock[];

setUpEach(async (stack) => {
  fixture = stack.use(await TestCron.start());
  replicas = await fixture.replicas(3);
});

/** Every replica checks files and clock, all at the same moment. */
async function look(): Promise<void> {
  await Promise.all(replicas.map(async (replica) => replica.scan()));
  await Promise.all(replicas.map(async (replica) => replica.fire()));
}

async function lookAt(time: string): Promise<void> {
  fixture.at(`2027-03-01T${time}Z`);
  await look();
}

async function turns(): Promise<AcceptedTurn[]> {
  const { inbox } = await fixture.scope();
  const found = await Promise.all((await inbox.turnIds()).map(async (id) => inbox.read(id)));
  return found.filter((turn) => turn !== undefined);
}

describe('a schedule', () => {
  it('fires one turn at its time, with three replicas, and records how it ended', async () => {
    const schedule = await fixture.schedule({ authority: 'cs', tools: ['read_file'], message: 'Sum up.' });
    await look();
    await lookAt('00:59:59');
    expect(await turns()).toEqual([]);
    await lookAt('01:00:00');
    await look();
    const [turn, ...others] = await turns();
    expect(others).toEqual([]);
    expect(turn).toMatchObject({ origin: 'schedule', agent: 'admin', authority: 'cs', tools: ['read_file'], text: 'Sum up.', keyId: null });
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran waiting']);
    await fixture.answerAll();
    await lookAt('01:00:05');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran done']);
    await lookAt('01:59:00');
    expect(await turns()).toEqual([]);
    await lookAt('02:00:00');
    expect(await turns()).toHaveLength(1);
  });

  it('is found again, and no time is fired twice, when Redis comes back empty at any moment', async () => {
    const schedule = await fixture.schedule({});
    await look();
    await fixture.redis.flush();
    await lookAt('01:00:00');
    await fixture.redis.flush();
    await look();
    expect(await turns()).toHaveLength(1);
    await fixture.answerAll();
    await fixture.redis.flush();
    await lookAt('01:00:10');
    expect(await turns()).toEqual([]);
    await lookAt('02:00:00');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran done', '02:00 ran waiting']);
  });

  it('for one moment fires once and is looked at no more', async () => {
    const schedule = await fixture.schedule({ schedule: { at: '2027-03-01T00:10:00Z' } });
    await lookAt('00:10:01');
    await fixture.answerAll();
    await lookAt('00:10:03');
    await lookAt('00:20:00');
    expect(await fixture.listRuns(schedule)).toEqual(['00:10 ran done']);
    const client = fixture.redis.client();
    expect(await client.zcard('concierge:{q0}:schedules')).toBe(0);
    client.disconnect();
  });

  it.each([
    ['run_once', ['01:00 missed', '02:00 missed', '03:00 ran done']],
    ['skip', ['01:00 missed', '02:00 missed', '03:00 missed']],
    ['run_all', ['01:00 ran done', '02:00 ran done', '03:00 ran done']],
  ] as const)('of the policy %s keeps to it after a stop of all replicas', async (missed, expected) => {
    const schedule = await fixture.schedule({ missed });
    await look();
    replicas = await fixture.replicas(2);
    fixture.at('2027-03-01T03:30:00Z');
    for (let round = 0; round < 6; round += 1) {
      await look();
      expect(await fixture.answerAll()).toBeLessThan(2);
      fixture.nowMs += 2000;
    }
    expect(await fixture.listRuns(schedule)).toEqual(expected);
  });

  it('that is paused, changed or removed is so at once, and a pause is not made up for', async () => {
    const schedule = await fixture.schedule({});
    await look();
    await fixture.write({ ...schedule, enabled: false });
    await lookAt('01:00:00');
    expect(await fixture.listRuns(schedule)).toEqual([]);
    await fixture.write({ ...schedule, countsFrom: '2027-03-01T01:00:00.000Z', schedule: { every: '5m' }, message: 'Anew.' });
    await look();
    await lookAt('01:05:00');
    expect(await turns()).toMatchObject([{ text: 'Anew.' }]);
    await fixture.answerAll();
    const { schedules } = await fixture.scope();
    await schedules.remove(schedule.id);
    // Like a replica that was in the middle of it.
    await schedules.runs.decide(schedule.id, {
      id: toRunId(fixture.nowMs),
      scheduledAt: '2027-03-01T01:05:00Z',
      trigger: 'schedule',
      outcome: 'waiting',
    });
    await lookAt('01:10:00');
    expect(await turns()).toEqual([]);
    expect(await fixture.listRuns(schedule)).toEqual([]);
  });

  it('of a suspended tenant does not fire', async () => {
    const schedule = await fixture.schedule({ missed: 'run_all' });
    await look();
    await fixture.tenants.setSuspended('acme', true);
    await lookAt('01:00:00');
    await lookAt('02:00:00');
    expect(await turns()).toEqual([]);
    await fixture.tenants.setSuspended('acme', false);
    await lookAt('03:00:00');
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 skipped', '02:00 skipped', '03:00 ran waiting']);
  });

  it('whose run is not finished leaves the next one out, or lets one wait', async () => {
    const skipping = await fixture.schedule({});
    const queueing = await fixture.schedule({ overlap: 'queue' });
    for (const time of ['01:00:00', '02:00:00', '03:00:00']) await lookAt(time);
    expect(await fixture.listRuns(skipping)).toEqual(['01:00 ran waiting', '02:00 skipped', '03:00 skipped']);
    expect(await fixture.listRuns(queueing)).toEqual(['01:00 ran waiting', '02:00 waiting', '03:00 skipped']);
    await fixture.answerAll();
    await lookAt('03:00:10');
    expect(await fixture.listRuns(queueing)).toEqual(['01:00 ran done', '02:00 ran waiting', '03:00 skipped']);
  });

  it('keeps its times when the clock is set back or forward', async () => {
    const schedule = await fixture.schedule({});
    await lookAt('01:00:00');
    await fixture.answerAll();
    await lookAt('00:30:00');
    await lookAt('01:00:00');
    await lookAt('02:20:00');
    await fixture.answerAll();
    await lookAt('02:10:00');
    await lookAt('02:30:00');
    expect(await turns()).toEqual([]);
    expect(await fixture.listRuns(schedule)).toEqual(['01:00 ran done', '02:00 ran done']);
  });

  it('runs on request, paused or not, beside its times', async () => {
    const schedule = await fixture.schedule({ enabled: false });
    await look();
    const { schedules } = await fixture.scope();
    await schedules.run(schedule.id, 'once');
    await schedules.run(schedule.id, 'once');
    await look();
    expect(await turns()).toHaveLength(1);
    await fixture.answerAll();
    fixture.nowMs += 2000;
    await look();
    expect(await schedules.history(schedule.id, 10)).toMatchObject([{ trigger: 'manual', outcome: 'ran', turn: { status: 'done' } }]);
  });
});

describe('the reply of a run', () => {
  const deliver = { channel: 'channel_c', to: '4242' } as const;

  it('goes into the outbox once, and the run records when it could not', async () => {
    const schedule = await fixture.schedule({ deliver });
    const scope = await fixture.scope();
    await lookAt('01:00:00');
    await fixture.answerAll({ reply: 'This is not delivered.' });
    await lookAt('01:00:05');
    await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
    await lookAt('02:00:00');
    await fixture.answerAll({ reply: 'All is well.' });
    await lookAt('02:00:05');
    await lookAt('02:00:10');
    expect(await scope.outbox.waiting()).toMatchObject([{ text: 'All is well.', channel: 'channel_c', to: '4242', agent: 'admin' }]);
    expect(await scope.schedules.history(schedule.id, 10)).toMatchObject([
      { turn: { status: 'done' }, delivery: { status: 'kept' } },
      { turn: { status: 'done' }, delivery: { status: 'failed', reason: 'telegram is not connected.' } },
    ]);
  });

  it('waits where the provider refuses what is sent for now, as an answer does', async () => {
    const schedule = await fixture.schedule({ deliver });
    const scope = await fixture.scope();
    const connected = await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
    await scope.channels.stopSending(connected, { reason: 'A payment is due.', nowMs: Date.now() });
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'receive_only' });
    await lookAt('01:00:00');
    await fixture.answerAll({ reply: 'All is well.' });
    await lookAt('01:00:05');
    expect(await scope.schedules.history(schedule.id, 10)).toMatchObject([{ delivery: { status: 'kept', reason: null } }]);
    expect(await scope.outbox.waiting()).toMatchObject([{ text: 'All is well.', channel: 'channel_c', to: '4242' }]);
  });

  it('is followed up in the view of the run', async () => {
    const schedule = await fixture.schedule({ deliver });
    const scope = await fixture.scope();
    await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
    await lookAt('01:00:00');
    await fixture.answerAll({ reply: 'All is well.' });
    await lookAt('01:00:05');
    const [message] = await scope.outbox.waiting();
    const id = message?.id ?? '';
    const at = new Date().toISOString();
    const delivered = async (): Promise<unknown> => (await scope.schedules.history(schedule.id, 1))[0]?.delivery;
    expect(await delivered()).toMatchObject({ status: 'kept', messageId: id, reason: null });
    await scope.outbox.record(id, [
      { kind: 'parts', at, parts: [{ text: 'All is well.', plain: 'All is well.' }] },
      { kind: 'result', at, part: 0, try: 1, outcome: 'sent' },
    ]);
    expect(await delivered()).toMatchObject({ status: 'sent', reason: null });
    const problem = { code: '131026', message: 'The app could not deliver it.' };
    await scope.outbox.record(id, [{ kind: 'receipt', at, part: 0, state: 'failed', problem }]);
    expect(await delivered()).toMatchObject({ status: 'failed', reason: 'The app could not deliver it.' });
  });

  it('that keeps failing is reported to its recipient, and then not again for a while', async () => {
    const schedule = await fixture.schedule({ deliver, alert: { afterFailures: 2, cooldown: '3h' } });
    const scope = await fixture.scope();
    await scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
    for (const hour of ['01', '02', '03', '04', '05']) {
      await lookAt(`${hour}:00:00`);
      await fixture.answerAll({ error: 'The model is away.' });
      await lookAt(`${hour}:00:05`);
    }
    const alerted = (await scope.schedules.history(schedule.id, 10)).filter(({ alertedAt }) => alertedAt !== null);
    expect(alerted.map(({ scheduledAt }) => scheduledAt.slice(11, 13))).toEqual(['05', '02']);
    expect((await scope.outbox.waiting()).map(({ text }) => text)).toEqual([
      'The schedule "Report" has failed 2 times in a row. The last time: The model is away.',
      'The schedule "Report" has failed 5 times in a row. The last time: The model is away.',
    ]);
  });
});

describe('a schedule that delivers nowhere', () => {
  it('and keeps failing is reported to the tenant’s own systems', async () => {
    const scope = await fixture.scope();
    await scope.events.endpoints.create({ url: 'https://example.com/failing', types: ['schedule.failing'] });
    const schedule = await fixture.schedule({ alert: { afterFailures: 2, cooldown: '3h' } });
    for (const hour of ['01', '02', '03']) {
      await lookAt(`${hour}:00:00`);
      await fixture.answerAll({ error: 'The model is away.' });
      await lookAt(`${hour}:00:05`);
    }
    expect((await scope.events.list({ limit: 10 })).items).toMatchObject([
      { type: 'schedule.failing', timestamp: '2027-03-01T02:00:00.000Z', data: { scheduleId: schedule.id, failures: 2 } },
    ]);
  });
});

describe('a schedule that delivers to a webhook', () => {
  const webhook = 'https://example.com/report';

  it('makes one event of each reply, and its runs record how the sending of it ended', async () => {
    const scope = await fixture.scope();
    await scope.events.endpoints.ensure(webhook);
    const schedule = await fixture.schedule({ deliver: { webhook } });
    await lookAt('01:00:00');
    await fixture.answerAll({ reply: 'All is well.' });
    await lookAt('01:00:05');
    await lookAt('01:00:10');
    const { items } = await scope.events.list({ limit: 10 });
    expect(items).toMatchObject([
      {
        type: 'schedule.completed',
        status: 'waiting',
        data: { tenant: 'acme', scheduleId: schedule.id, name: 'Report', text: 'All is well.' },
      },
    ]);
    const [run] = await scope.schedules.history(schedule.id, 10);
    const eventId = items[0]?.id ?? '';
    expect(run?.delivery).toEqual({ status: 'kept', messageId: null, eventId, reason: null });
    await scope.schedules.runs.noteDelivery(schedule.id, run?.id ?? '', { eventId, status: 'failed', reason: 'It answered 500.' });
    expect((await scope.schedules.history(schedule.id, 10))[0]?.delivery).toMatchObject({ status: 'failed', reason: 'It answered 500.' });
    await scope.schedules.runs.noteDelivery(schedule.id, run?.id ?? '', { eventId, status: 'sent', reason: null });
    expect((await scope.schedules.history(schedule.id, 10))[0]?.delivery).toMatchObject({ status: 'sent', reason: null });
  });

  it('records it when its endpoint has gone', async () => {
    const schedule = await fixture.schedule({ deliver: { webhook } });
    await lookAt('01:00:00');
    await fixture.answerAll({ reply: 'This is not delivered.' });
    await lookAt('01:00:05');
    const [run] = await (await fixture.scope()).schedules.history(schedule.id, 10);
    expect(run?.delivery).toMatchObject({ status: 'failed', reason: expect.stringContaining('no event endpoint with this URL') });
  });

  it('reports to the same URL that it keeps failing, and it is counted', async () => {
    const scope = await fixture.scope();
    await scope.events.endpoints.ensure(webhook);
    await fixture.schedule({ deliver: { webhook }, alert: { afterFailures: 2, cooldown: '3h' } });
    for (const hour of ['01', '02', '03']) {
      await lookAt(`${hour}:00:00`);
      await fixture.answerAll({ error: 'The model is away.' });
      await lookAt(`${hour}:00:05`);
    }
    expect((await scope.events.list({ limit: 10 })).items).toMatchObject([
      { type: 'schedule.failing', timestamp: '2027-03-01T02:00:00.000Z', data: { failures: 2, error: 'The model is away.' } },
    ]);
    const figures = await fixture.registry.metrics();
    expect(figures).toMatch(/concierge_schedule_failing_total\{service="cron"\} [1-9]/u);
    expect(figures).toMatch(/concierge_schedule_runs_total\{outcome="failed",service="cron"\} [1-9]/u);
  });
});

describe('a missed run', () => {
  it('is reported once to subscribers, whatever number of replicas sees it', async () => {
    const scope = await fixture.scope();
    await scope.events.endpoints.create({ url: 'https://example.com/missed', types: ['schedule.missed'] });
    const schedule = await fixture.schedule({ missed: 'skip' });
    await look();
    await lookAt('02:30:00');
    await look();
    const { items } = await scope.events.list({ limit: 10 });
    expect(items).toMatchObject([
      { type: 'schedule.missed', data: { scheduleId: schedule.id, scheduledAt: '2027-03-01T02:00:00.000Z' } },
      { type: 'schedule.missed', data: { scheduleId: schedule.id, scheduledAt: '2027-03-01T01:00:00.000Z' } },
    ]);
  });

  it('is reported by another replica when the one that recorded it died before it could', async () => {
    const scope = await fixture.scope();
    await scope.events.endpoints.create({ url: 'https://example.com/missed', types: ['schedule.missed'] });
    const schedule = await fixture.schedule({ missed: 'skip' });
    const tickMs = Date.parse('2027-03-01T01:00:00Z');
    const decision = { id: toRunId(tickMs), scheduledAt: new Date(tickMs).toISOString(), trigger: 'schedule', outcome: 'missed' } as const;
    await scope.schedules.runs.decide(schedule.id, decision);
    await lookAt('01:05:00');
    expect((await scope.events.list({ limit: 10 })).items).toMatchObject([{ type: 'schedule.missed', data: { runId: decision.id } }]);
  });
});

describe('the heartbeat', () => {
  const id = deriveHeartbeatId('acme');

  async function begin(heartbeat: object, text: string): Promise<void> {
    const scope = await fixture.scope();
    await scope.updateSettings({ heartbeat });
    await writeFile(join(scope.root, 'HEARTBEAT.md'), text);
    await look();
  }

  /** Moves the clock forward by this many minutes and checks every one of them. */
  async function pass(minutes: number): Promise<void> {
    for (let minute = 0; minute < minutes; minute += 1) {
      fixture.nowMs += 60_000;
      await look();
    }
  }

  const outcomes = async (): Promise<(string | null)[]> => {
    const runs = await (await fixture.scope()).schedules.runs.list(id, 50);
    return [...new Set(runs.map(({ outcome, reason }) => reason ?? outcome))];
  };

  it('beats at its distance, once for all replicas, as a turn of the owner’s agent', async () => {
    await begin({ every: '10m' }, 'Look after the inbox.');
    await pass(10);
    expect(await turns()).toMatchObject([
      { origin: 'heartbeat', agent: 'admin', authority: 'admin', text: expect.stringContaining(heartbeatToken) },
    ]);
    await fixture.answerAll({ reply: 'The inbox is full.' });
    await pass(20);
    expect((await fixture.listRuns({ id })).length).toBeGreaterThanOrEqual(2);
  });

  it('beats no more often than schedules may, and as rarely as one likes', async () => {
    await begin({ every: '5s' }, 'Look after the inbox.');
    const scope = await fixture.scope();
    expect((await readHeartbeat(scope, fixture.nowMs))?.schedule).toEqual({ every: '1m' });
    await scope.updateSettings({ heartbeat: { every: '7d' } });
    expect((await readHeartbeat(scope, fixture.nowMs))?.schedule).toEqual({ every: '7d' });
  });

  it('leaves no conversation when there was nothing to do, and one when there was', async () => {
    await begin({ every: '10m' }, 'Look after the inbox.');
    const { sessions, schedules } = await fixture.scope();
    for (const reply of [heartbeatToken, 'The inbox is full.']) {
      await pass(10);
      expect(await fixture.answerAll({ reply })).toBe(1);
      await pass(1);
    }
    const found = (await schedules.runs.list(id, 10)).toReversed().slice(0, 2);
    expect(found).toMatchObject([{ turn: { status: 'done' } }, { turn: { status: 'done' } }]);
    const kept = await Promise.all(found.map(async ({ turn }) => (await sessions.load(turn?.contact_id ?? '')) !== undefined));
    expect(kept).toEqual([false, true]);
  });

  it('is skipped when HEARTBEAT.md is empty, outside its hours, and while a turn is under way', async () => {
    await begin({ every: '10m' }, '<!-- nothing -->');
    await pass(10);
    expect(await outcomes()).toEqual(['HEARTBEAT.md says nothing']);
    await begin({ every: '10m', activeHours: '08:00-20:00' }, 'Look after the inbox.');
    await pass(10);
    expect(await outcomes()).toContain('it is outside the active hours 08:00-20:00');
    await begin({ every: '10m', activeHours: '22:00-06:00' }, 'Look after the inbox.');
    await pass(20);
    expect(await outcomes()).toContain('a turn is under way');
    expect(await turns()).toHaveLength(1);
  });

  it('does not exist when no setting asks for it, or the tenant is suspended', async () => {
    await begin({ every: '10m' }, 'Look after the inbox.');
    await fixture.tenants.setSuspended('acme', true);
    await pass(10);
    expect(await outcomes()).toEqual(['the tenant is suspended']);
    await (await fixture.scope()).updateSettings({ heartbeat: null, suspended: null });
    await pass(20);
    expect(await outcomes()).toEqual(['the tenant is suspended']);
    expect(await turns()).toEqual([]);
  });
});
