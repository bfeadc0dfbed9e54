import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it } from '@jest/globals';
import type { AcceptedTurn, BudgetsView, ModelUsage, TenantSettings } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log } from '@concierge/testing';
import { TestCore } from '@concierge/testing/core';
import { budgetReached } from '../src/events/webhook-events.ts';
import { Budgets, keyOf, type TurnBudget } from '../src/index.ts';
import { journalUsage, recordEnd, usage } from './usage-records.ts';

let fixture: TestCore;
let scope: TenantScope;
let nowMs: number;

setUpEach(async (stack) => {
  fixture = stack.use(await TestCore.start());
  // No reconciler notes the time here; service time would stand still soon after a note, and no reservation end.
  await fixture.core.redis.del(keyOf.clock);
  scope = await fixture.scope();
  nowMs = Date.parse('2027-03-10T12:00:00Z');
});

/** The budgets as one process has them. */
function newBudgets(reservationMs?: number): Budgets {
  const { redis, events } = fixture.core;
  return new Budgets({ redis, webhookEvents: events.outgoing, log, now: () => nowMs, reservationMs });
}

async function limit(limits: TenantSettings['limits'], more: Partial<TenantSettings> = {}): Promise<TenantSettings> {
  return scope.updateSettings({ ...more, limits });
}

let made = 0;

function newTurn(origin: AcceptedTurn['origin'] = 'api'): AcceptedTurn {
  made += 1;
  const turnId = `t_${made.toString(16).padStart(32, '0')}`;
  return {
    version: 1,
    turnId,
    tenantId: 'acme',
    sessionId: made.toString(16).padStart(32, '0'),
    acceptedAtMs: nowMs,
    origin,
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    sender: null,
    text: 'hello',
    attachments: [],
    requestHash: 'f'.repeat(64),
    keyId: null,
  };
}

/** One attempt at a turn. */
function begin(budgets: Budgets, settings: TenantSettings, turn = newTurn()): TurnBudget {
  return beginAttempt(budgets, settings, { turn, attempt: 1 });
}

function beginAttempt(
  budgets: Budgets,
  settings: TenantSettings,
  run: { readonly turn: AcceptedTurn; readonly attempt: number },
): TurnBudget {
  const budget = budgets.forTurn({ scope, ...run }, settings, []);
  if (budget === undefined) throw new Error('the tenant has no budget');
  return budget;
}

/** A call from its reservation to its end. */
async function callModel(budgets: Budgets, settings: TenantSettings, took: ModelUsage): Promise<void> {
  const call = await begin(budgets, settings).reserve({ tokens: 10, nanos: 0 });
  await call.settle(took);
}

/** What is spent and reserved, by `day tokens` and the like. */
async function look(budgets = newBudgets()): Promise<Record<string, readonly [number, number]>> {
  const view = await budgets.view(scope);
  return Object.fromEntries((view?.items ?? []).map(({ period, unit, spent, reserved }) => [`${period} ${unit}`, [spent, reserved]]));
}

async function state(): Promise<BudgetsView['items'][number]['state'] | undefined> {
  return (await newBudgets().view(scope))?.items[0]?.state;
}

describe('a tenant without a budget', () => {
  it('has nothing counted, and Redis is not asked', async () => {
    const budgets = newBudgets();
    const settings = await limit({ requestsPerHour: 5 });
    const { redis } = fixture.core;
    const sent = redis.sendCommand.bind(redis);
    const scripts: string[] = [];
    redis.sendCommand = (command, stream) => {
      if (command.args.some((arg) => String(arg).includes(':budget-'))) scripts.push(command.name);
      return sent(command, stream);
    };
    expect(budgets.forTurn({ scope, turn: newTurn(), attempt: 1 }, settings, [])).toBeUndefined();
    expect(await budgets.view(scope)).toBeUndefined();
    await budgets.refuseWhenSpent(scope, { isOwners: true });
    expect(await budgets.schedulesBlockedReason(scope)).toBeNull();
    expect(scripts).toEqual([]);
    await limit({ tokensPerDay: 5 });
    await budgets.view(scope);
    redis.sendCommand = sent;
    expect(scripts).not.toEqual([]);
  });
});

describe('model calls', () => {
  it('are counted by day and month, in tokens and dollars', async () => {
    const settings = await limit({ tokensPerDay: 1000, usdPerDay: 1, tokensPerMonth: 9000, usdPerMonth: 5 });
    const budgets = newBudgets();
    const call = await begin(budgets, settings).reserve({ tokens: 40, nanos: 2_000_000 });
    expect(await look()).toEqual({
      'day tokens': [0, 40],
      'day usd': [0, 0.002],
      'month tokens': [0, 40],
      'month usd': [0, 0.002],
    });
    await call.settle(usage(100, 0.25));
    expect(await look()).toEqual({ 'day tokens': [100, 0], 'day usd': [0.25, 0], 'month tokens': [100, 0], 'month usd': [0.25, 0] });
  });

  it('of twenty turns at once pass the limit by one call at most', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const processes = [newBudgets(), newBudgets()];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, async (_, index) =>
        begin(processes[index % 2] ?? newBudgets(), settings).reserve({ tokens: 300, nanos: 0 }),
      ),
    );
    const admitted = outcomes.filter((outcome) => outcome.status === 'fulfilled');
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(admitted).toHaveLength(4);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'budget_exceeded', status: 429 });
    for (const { value } of admitted) await value.settle(usage(300));
    expect(await look()).toEqual({ 'day tokens': [1200, 0] });
    await expect(begin(newBudgets(), settings).reserve({ tokens: 1, nanos: 0 })).rejects.toMatchObject({ code: 'budget_exceeded' });
  });

  it('that fail cost nothing', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const call = await begin(newBudgets(), settings).reserve({ tokens: 300, nanos: 0 });
    await call.settle(undefined);
    expect(await look()).toEqual({ 'day tokens': [0, 0] });
  });

  it('are counted once when the command is sent again', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const call = await begin(newBudgets(), settings).reserve({ tokens: 300, nanos: 0 });
    const { redis } = fixture.core;
    const sent = redis.sendCommand.bind(redis);
    let again: readonly string[] = [];
    redis.sendCommand = (command, stream) => {
      if (command.name === 'evalsha') again = command.args.map(String);
      return sent(command, stream);
    };
    await call.settle(usage(100));
    redis.sendCommand = sent;
    expect(await redis.call('evalsha', ...again)).toEqual([]);
    expect(await look()).toEqual({ 'day tokens': [100, 0] });
  });

  it('of a worker that died give their reservation back', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    await begin(newBudgets(1), settings).reserve({ tokens: 2000, nanos: 0 });
    const call = await eventually(async () => begin(newBudgets(), settings).reserve({ tokens: 5, nanos: 0 }));
    await call.settle(usage(7));
    expect(await look()).toEqual({ 'day tokens': [7, 0] });
  });

  it('of an attempt that died give their reservation back to the next attempt, and to no other turn', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const turn = newTurn();
    const cut = await begin(newBudgets(), settings, turn).reserve({ tokens: 2000, nanos: 0 });
    await expect(begin(newBudgets(), settings).reserve({ tokens: 1, nanos: 0 })).rejects.toMatchObject({ code: 'budget_exceeded' });
    const second = beginAttempt(newBudgets(), settings, { turn, attempt: 2 });
    const call = await second.reserve({ tokens: 300, nanos: 0 });
    expect(await look()).toEqual({ 'day tokens': [0, 300] });
    // One attempt may have several calls under way, and one that was taken for dead takes nothing from a later one.
    await second.reserve({ tokens: 20, nanos: 0 });
    await begin(newBudgets(), settings, turn).reserve({ tokens: 1, nanos: 0 });
    expect(await look()).toEqual({ 'day tokens': [0, 321] });
    await call.settle(usage(7));
    await cut.settle(undefined);
    expect(await look()).toEqual({ 'day tokens': [7, 21] });
  });

  it('that outlast their reservation are counted all the same', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const call = await begin(newBudgets(1), settings).reserve({ tokens: 2000, nanos: 0 });
    await eventually(async () => (await look())['day tokens']?.[1] === 0);
    await call.settle(usage(100));
    expect(await look()).toEqual({ 'day tokens': [100, 0] });
  });
});

describe('Redis that was emptied', () => {
  it('has the sum of the records again', async () => {
    const settings = await limit({ tokensPerDay: 1000, usdPerMonth: 1 });
    const turn = newTurn();
    const budgets = newBudgets();
    const call = await begin(budgets, settings, turn).reserve({ tokens: 10, nanos: 0 });
    await call.settle(usage(400, 0.1));
    await recordEnd({ scope, nowMs }, turn, [usage(400, 0.1)]);
    const before = await look();
    await fixture.server.flush();
    expect(await look()).toEqual(before);
    expect(before).toEqual({ 'day tokens': [400, 0], 'month usd': [0.1, 0] });
  });

  it('counts what a running turn had spent before, as soon as it calls again', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const budgets = newBudgets();
    const turn = newTurn();
    const running = begin(budgets, settings, turn);
    await (await running.reserve({ tokens: 10, nanos: 0 })).settle(usage(200));
    await fixture.server.flush();
    await callModel(budgets, settings, usage(50));
    expect(await look()).toEqual({ 'day tokens': [50, 0] });
    const call = await running.reserve({ tokens: 10, nanos: 0 });
    expect(await look()).toEqual({ 'day tokens': [250, 10] });
    await call.settle(usage(100));
    await (await running.reserve({ tokens: 10, nanos: 0 })).settle(usage(30));
    expect(await look()).toEqual({ 'day tokens': [380, 0] });
  });

  it('counts a turn once whose journal is in the sum', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const budgets = newBudgets();
    const turn = newTurn();
    const running = begin(budgets, settings, turn);
    await (await running.reserve({ tokens: 10, nanos: 0 })).settle(usage(200));
    await journalUsage({ scope, nowMs }, turn, usage(200));
    await fixture.server.flush();
    expect(await look()).toEqual({ 'day tokens': [200, 0] });
    await (await running.reserve({ tokens: 10, nanos: 0 })).settle(usage(100));
    expect(await look()).toEqual({ 'day tokens': [300, 0] });
  });

  it('in the middle of a call loses nothing of it', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const running = begin(newBudgets(), settings);
    const call = await running.reserve({ tokens: 10, nanos: 0 });
    await fixture.server.flush();
    await call.settle(usage(200));
    expect(await look()).toEqual({ 'day tokens': [200, 0] });
    await (await running.reserve({ tokens: 10, nanos: 0 })).settle(usage(100));
    expect(await look()).toEqual({ 'day tokens': [300, 0] });
  });

  it('in the middle of a call, and a turn that ends before the sum is made, is counted once', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const turn = newTurn();
    const call = await begin(newBudgets(), settings, turn).reserve({ tokens: 10, nanos: 0 });
    await fixture.server.flush();
    await call.settle(usage(200));
    await recordEnd({ scope, nowMs }, turn, [usage(200)]);
    expect(await look()).toEqual({ 'day tokens': [200, 0] });
  });

  it('is summed up again where a settlement may be lost', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    const budgets = newBudgets();
    const turn = newTurn();
    const call = await begin(budgets, settings, turn).reserve({ tokens: 10, nanos: 0 });
    const { redis } = fixture.core;
    const sent = redis.sendCommand.bind(redis);
    redis.sendCommand = (command) => {
      command.reject(new Error('cut off'));
      return command.promise;
    };
    await call.settle(usage(200));
    await expect(look(budgets)).rejects.toThrow('cut off');
    redis.sendCommand = sent;
    await recordEnd({ scope, nowMs }, turn, [usage(200)]);
    expect(await look(budgets)).toEqual({ 'day tokens': [200, 10] });
  });
});

describe('a day that ends', () => {
  it('leaves a whole budget to the next one, and the month goes on', async () => {
    const settings = await limit({ tokensPerDay: 100, tokensPerMonth: 1000 });
    const budgets = newBudgets();
    const turn = newTurn();
    const call = await begin(budgets, settings, turn).reserve({ tokens: 10, nanos: 0 });
    await call.settle(usage(150));
    await recordEnd({ scope, nowMs }, turn, [usage(150)]);
    await expect(begin(budgets, settings).reserve({ tokens: 1, nanos: 0 })).rejects.toThrow(
      /^The day's budget of 100 tokens for model calls is spent; the next day begins at 2027-03-11T00:00:00.000Z/u,
    );
    nowMs = Date.parse('2027-03-11T00:00:00Z');
    await callModel(budgets, settings, usage(20));
    expect(await look()).toEqual({ 'day tokens': [20, 0], 'month tokens': [170, 0] });
    nowMs = Date.parse('2027-04-01T00:00:00Z');
    expect(await look()).toEqual({ 'day tokens': [0, 0], 'month tokens': [0, 0] });
  });

  it('and is the first of its month is counted and reported apart from the month', async () => {
    nowMs = Date.parse('2027-04-01T09:00:00Z');
    await scope.events.endpoints.create({ url: 'https://example.com/', types: ['budget.reached'] });
    const settings = await limit({ tokensPerDay: 1000, tokensPerMonth: 1200 });
    const budgets = newBudgets();
    await callModel(budgets, settings, usage(850));
    expect(await look()).toEqual({ 'day tokens': [850, 0], 'month tokens': [850, 0] });
    await callModel(budgets, settings, usage(150));
    const reports = async (): Promise<string[]> =>
      (await scope.events.list({ limit: 10 })).items.map(({ data: { period, percent } }) => `${String(period)} ${String(percent)}`);
    await eventually(async () => (await reports()).length === 3);
    expect((await reports()).toSorted()).toEqual(['day 100', 'day 80', 'month 80']);
  });

  it('ends in the time zone of the tenant, or in the one that the operator has set', async () => {
    nowMs = Date.parse('2027-03-10T23:30:00Z');
    await recordEnd({ scope, nowMs }, newTurn(), [usage(70)]);
    nowMs = Date.parse('2027-03-11T01:00:00Z');
    await limit({ tokensPerDay: 100 }, { timezone: 'Europe/Berlin' });
    const berlin = await newBudgets().view(scope);
    expect(berlin).toMatchObject({ timezone: 'Europe/Berlin', items: [{ from: '2027-03-10T23:00:00.000Z', spent: 70, left: 30 }] });
    await limit({ budgetTimezone: 'UTC' });
    expect(await newBudgets().view(scope)).toMatchObject({ timezone: 'UTC', items: [{ from: '2027-03-11T00:00:00.000Z', spent: 0 }] });
  });

  it('has 23 hours where the clocks go forward', async () => {
    nowMs = Date.parse('2027-03-28T10:00:00Z');
    await limit({ tokensPerDay: 100 }, { timezone: 'Europe/Berlin' });
    expect((await newBudgets().view(scope))?.items[0]).toMatchObject({
      from: '2027-03-27T23:00:00.000Z',
      until: '2027-03-28T22:00:00.000Z',
    });
  });
});

describe('a budget that runs out', () => {
  it('is reported at 80 per cent and at its end, once each', async () => {
    await scope.events.endpoints.create({ url: 'https://example.com/', types: ['budget.reached'] });
    const settings = await limit({ tokensPerDay: 1000 });
    const reports = async (): Promise<unknown[]> =>
      (await scope.events.list({ limit: 10 })).items.map(({ type, data: { percent, spent } }) => [type, percent, spent]);
    await callModel(newBudgets(), settings, usage(700));
    expect(await state()).toBe('open');
    await callModel(newBudgets(), settings, usage(100));
    await eventually(async () => (await reports()).length === 1);
    expect(await state()).toBe('low');
    await callModel(newBudgets(), settings, usage(50));
    await callModel(newBudgets(), settings, usage(400));
    await eventually(async () => (await reports()).length === 2);
    const [low, spent] = [
      ['budget.reached', 80, 800],
      ['budget.reached', 100, 1250],
    ];
    expect(await reports()).toEqual(expect.arrayContaining([low, spent]));
    expect(await state()).toBe('spent');
  });

  it('is reported once in its month, after an hour without a call, too, and anew where it is raised', async () => {
    const reports: object[] = [];
    const emit = async (_scope: unknown, { data }: { readonly data: object }): Promise<void> => {
      await Promise.resolve(reports.push(data));
    };
    const { redis } = fixture.core;
    const budgets = new Budgets({ redis, webhookEvents: { emit }, log, now: () => nowMs });
    const [settings, turn] = [await limit({ tokensPerMonth: 1000 }), newTurn()];
    await (await begin(budgets, settings, turn).reserve({ tokens: 10, nanos: 0 })).settle(usage(850));
    await recordEnd({ scope, nowMs }, turn, [usage(850)]);
    // As Redis does with sums that nothing has used for an hour.
    await redis.del(keyOf.budgetSpent(scope.tenantId));
    nowMs = Date.parse('2027-03-11T12:00:00Z');
    await callModel(budgets, settings, usage(10));
    await callModel(budgets, await limit({ tokensPerMonth: 1050 }), usage(5));
    expect(reports).toMatchObject([
      { percent: 80, limit: 1000, spent: 850 },
      { percent: 80, limit: 1050, spent: 865 },
    ]);
  });

  it('is one event, whoever finds it again on the same day', () => {
    const reached = { period: 'day', unit: 'usd', percent: 80, limit: 1, spent: 0.8, until: '2027-03-11T00:00:00.000Z' } as const;
    const periodFromMs = Date.parse('2027-03-10T00:00:00Z');
    const first = budgetReached(reached, { periodFromMs, nowMs });
    const second = budgetReached({ ...reached, spent: 0.9 }, { periodFromMs, nowMs: nowMs + 60_000 });
    expect([second.key, second.at]).toEqual([first.key, first.at]);
  });

  it('stops schedules first, and answers people to its end', async () => {
    const settings = await limit({ tokensPerDay: 1000 });
    await callModel(newBudgets(), settings, usage(899));
    expect(await newBudgets().schedulesBlockedReason(scope)).toBeNull();
    await callModel(newBudgets(), settings, usage(1));
    expect(await newBudgets().schedulesBlockedReason(scope)).toMatch(/budget of 1000 tokens .* spent to 90 per cent/u);
    for (const origin of ['schedule', 'heartbeat'] as const)
      await expect(begin(newBudgets(), settings, newTurn(origin)).reserve({ tokens: 1, nanos: 0 })).rejects.toMatchObject({
        code: 'budget_exceeded',
      });
    await newBudgets().refuseWhenSpent(scope, { isOwners: true });
    await callModel(newBudgets(), settings, usage(100));
    await expect(newBudgets().refuseWhenSpent(scope, { isOwners: true })).rejects.toMatchObject({
      code: 'budget_exceeded',
      retryAfterSeconds: 12 * 3600,
    });
  });

  it('stops schedules at the share that the operator has set', async () => {
    const settings = await limit({ tokensPerDay: 1000, scheduleBudgetShare: 0.5 });
    await callModel(newBudgets(), settings, usage(500));
    expect(await newBudgets().schedulesBlockedReason(scope)).toContain('spent to 50 per cent');
    expect(await state()).toBe('schedules_stopped');
  });

  it('has no figures for others than the owner, and asks nobody to wait longer than a day', async () => {
    const settings = await limit({ tokensPerMonth: 10 });
    await callModel(newBudgets(), settings, usage(10));
    const refusal = newBudgets().refuseWhenSpent(scope, { isOwners: false });
    await expect(refusal).rejects.toMatchObject({ code: 'budget_exceeded', retryAfterSeconds: 24 * 3600 });
    await expect(refusal).rejects.toThrow(/^[^\d]*$/u);
  });

  it('refuses a tenant with keys of its own no message and no schedule: the calls that the operator pays are', async () => {
    const settings = await limit({ tokensPerDay: 10 });
    await callModel(newBudgets(), settings, usage(10));
    await callModel(newBudgets(), await limit({ tokensPerDay: 11 }), { ...usage(500), ownKey: true });
    expect(await look()).toEqual({ 'day tokens': [10, 0] });
    await limit({ tokensPerDay: 10 });
    await expect(newBudgets().refuseWhenSpent(scope, { isOwners: true })).rejects.toMatchObject({ code: 'budget_exceeded' });
    await scope.modelKeys.put('openai', { apiKey: 'sk-of-the-tenant' });
    await newBudgets().refuseWhenSpent(scope, { isOwners: true });
    expect(await newBudgets().schedulesBlockedReason(scope)).toBeNull();
    await expect(begin(newBudgets(), settings).reserve({ tokens: 1, nanos: 0 })).rejects.toMatchObject({ code: 'budget_exceeded' });
  });

  it('has room again when the operator raises it', async () => {
    const settings = await limit({ tokensPerDay: 10 });
    const running = begin(newBudgets(), settings);
    await (await running.reserve({ tokens: 1, nanos: 0 })).settle(usage(10));
    await expect(running.reserve({ tokens: 1, nanos: 0 })).rejects.toMatchObject({ code: 'budget_exceeded' });
    await limit({ tokensPerDay: 100 });
    await (await running.reserve({ tokens: 1, nanos: 0 })).settle(usage(5));
    expect(await look()).toEqual({ 'day tokens': [15, 0] });
  });
});
