import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import {
  AppError,
  DAY_MS,
  limits,
  type AcceptedTurn,
  type BudgetReached,
  type BudgetsView,
  type ModelUsage,
  type TenantSettings,
} from '@concierge/contract';
import { background, RedisScript, findSlot, type Log } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { budgetReached, type WebhookEvents } from '../events/webhook-events.ts';
import type { TurnRun } from '../runs/turn-run.ts';
import { keyOf, queuePrefix } from '../keys.ts';
import { budgetRules, inUnit, nothing, type Amount, type BudgetPeriod, type BudgetRules, type BudgetUnit } from './budget-rules.ts';
import { sumRecords, sumUsage } from './spent-records.ts';

const scripts = {
  reserve: new RedisScript(new URL('./reserve.lua', import.meta.url)),
  settle: new RedisScript(new URL('./settle.lua', import.meta.url)),
};

const Unit = z.enum(['tokens', 'usd']);
const Unknown = z.tuple([z.literal('unknown'), z.array(z.string()), z.array(z.tuple([z.string(), z.number(), z.number()]))]);
const Looked = z.tuple([
  z.enum(['ok', 'spent']),
  z.int(),
  z.union([Unit, z.literal('')]),
  z.number(),
  z.number(),
  z.array(z.tuple([z.number(), z.number(), z.string()])),
]);
const ReserveReply = z.union([Unknown, Looked]);
const SettleReply = z.array(z.tuple([z.int(), Unit, z.int(), z.number()]));

/** Sums are lost at most so often in a row before the caller gets an error. */
const SUMS_MAX = 5;
/** A second settlement of one call comes within this time: the command was sent again by a connection that was cut. */
const SETTLED_MS = 60_000;
/** Longer than any period. */
const REACHED_MS = 32 * DAY_MS;
const FULL_SHARE = 1;
/** What others than the owner read. */
export const budgetSpentNotice = 'This service cannot answer at the moment. Try again later.';

/** Most tenants have none: their turns ask nothing of `Budgets`. */
export function hasBudget({ limits: own }: Pick<TenantSettings, 'limits'>): boolean {
  if (own === undefined) return false;
  return [own.tokensPerDay, own.tokensPerMonth, own.usdPerDay, own.usdPerMonth].some((limit) => limit !== undefined);
}

export interface BudgetsOptions {
  readonly redis: Redis;
  readonly webhookEvents: Pick<WebhookEvents, 'emit'>;
  readonly log: Log;
  readonly now?: (() => number) | undefined;
  /** How long a reservation lasts that nobody settles. */
  readonly reservationMs?: number | undefined;
}

/** What a turn has spent in all, and which sums it has met. */
interface TurnTotal extends Amount {
  readonly id: string;
  readonly attempt: number;
  readonly seeds: Readonly<Record<string, string>>;
}

interface Asked {
  readonly share: number;
  readonly turn?: TurnTotal;
  readonly call?: Amount & { readonly id: string };
}

interface CallAsked extends Required<Pick<Asked, 'turn' | 'call'>> {
  readonly isSchedule: boolean;
}

/** A period, and what is gone of it. */
interface CountedPeriod extends BudgetPeriod, Amount {
  readonly seed: string;
}

interface Look {
  readonly rules: BudgetRules;
  readonly periods: readonly CountedPeriod[];
  readonly reserved: Amount;
  /** The first limit that is used up to the share that was asked for. */
  readonly spent: { readonly period: CountedPeriod; readonly unit: BudgetUnit } | undefined;
}

/**
 * What tenants may spend on model calls. The records of usage on disk are the truth; Redis holds their sums and what
 * calls under way have reserved, and may lose both at any time: a sum that is missing is made again. A tenant without a
 * budget costs nothing here.
 */
export class Budgets {
  readonly #options: BudgetsOptions;
  /** Tenants of which a settlement may be lost: their sums are made again. */
  readonly #doubted = new Set<string>();

  constructor(options: BudgetsOptions) {
    this.#options = options;
  }

  /** undefined: the tenant has no budget. */
  async view(scope: TenantScope): Promise<BudgetsView | undefined> {
    const look = await this.#look(scope, { share: FULL_SHARE });
    return look === undefined ? undefined : toView(look);
  }

  /**
   * Before a message is accepted. The figures are the owner's business. With keys of its own a tenant may be answered
   * without the operator's money: the calls decide.
   * @throws AppError `budget_exceeded`
   */
  async refuseWhenSpent(scope: TenantScope, { isOwners }: { readonly isOwners: boolean }): Promise<void> {
    if (await paysItself(scope)) return;
    const look = await this.#look(scope, { share: FULL_SHARE });
    if (look?.spent !== undefined) throw this.#refusal(look.spent, FULL_SHARE, isOwners ? undefined : budgetSpentNotice);
  }

  /** Why no schedule of the tenant may start a run; null when they may. */
  async schedulesBlockedReason(scope: TenantScope): Promise<string | null> {
    const rules = this.#rules(await scope.settings());
    if (rules === undefined || (await paysItself(scope))) return null;
    const { spent } = await this.#reserve(scope, rules, { share: rules.scheduleShare });
    return spent === undefined ? null : describeSpent(spent, rules.scheduleShare);
  }

  /** The budget of one attempt at a turn; undefined when there is none. `used`: by the steps of earlier attempts. */
  forTurn(
    { scope, turn, attempt }: Pick<TurnRun, 'scope' | 'turn' | 'attempt'>,
    settings: TenantSettings,
    used: readonly ModelUsage[],
  ): TurnBudget | undefined {
    return hasBudget(settings) ? new TurnBudget(this, { scope, turn, attempt, used: sumUsage(used) }) : undefined;
  }

  /** @throws AppError `budget_exceeded` */
  async reserveCall(scope: TenantScope, { isSchedule, ...asked }: CallAsked): Promise<Look | undefined> {
    const rules = this.#rules(await scope.settings());
    if (rules === undefined) return undefined;
    const share = isSchedule ? rules.scheduleShare : FULL_SHARE;
    const look = await this.#reserve(scope, rules, { ...asked, share });
    if (look.spent !== undefined) throw this.#refusal(look.spent, share);
    return look;
  }

  /** Never fails: a settlement that cannot be stored makes the sums doubtful, and they are made again. */
  async settleCall(scope: TenantScope, { rules }: Look, settled: Required<Pick<Asked, 'turn' | 'call'>>): Promise<void> {
    const { redis, log } = this.#options;
    const { tenantId } = scope;
    const given = {
      counters: toCounters(rules.periods),
      percents: [limits.budgetWarningPercent, 100],
      settledMs: SETTLED_MS,
      reachedMs: REACHED_MS,
      ...settled,
    };
    const keys = [...budgetKeys(tenantId), keyOf.budgetReached(tenantId)];
    try {
      const reached = SettleReply.parse(await scripts.settle.run(findSlot(redis, tenantId), keys, [JSON.stringify(given)]));
      for (const [index, unit, percent, spent] of reached) {
        const period = rules.periods[index - 1];
        if (period !== undefined) this.#report(scope, period, { unit, percent, spent });
      }
    } catch (error) {
      this.#doubted.add(tenantId);
      log.warn({ tenantId, err: error }, 'a model call could not be counted, the sums of the budgets are made again');
    }
  }

  async #look(scope: TenantScope, asked: Asked): Promise<Look | undefined> {
    const rules = this.#rules(await scope.settings());
    return rules === undefined ? undefined : await this.#reserve(scope, rules, asked);
  }

  #rules(settings: TenantSettings): BudgetRules | undefined {
    return hasBudget(settings) ? budgetRules(settings, this.#nowMs()) : undefined;
  }

  async #reserve(scope: TenantScope, rules: BudgetRules, { call, ...asked }: Asked): Promise<Look> {
    const { redis, reservationMs = limits.budgetReservationMs } = this.#options;
    const { tenantId } = scope;
    const forget = this.#doubted.delete(tenantId);
    const base = {
      ...asked,
      ...(call !== undefined && { call: { ...call, keptMs: reservationMs } }),
      counters: toCounters(rules.periods),
    };
    let seeds: Record<string, unknown> = {};
    for (let sums = 0; sums <= SUMS_MAX; sums += 1) {
      const given = { ...base, seeds, ...(forget && sums === 0 && { forget }) };
      const run = scripts.reserve.run(findSlot(redis, tenantId), budgetKeys(tenantId), [JSON.stringify(given)]);
      const reply = ReserveReply.parse(
        await run.catch((error: unknown) => {
          if (forget) this.#doubted.add(tenantId);
          throw error;
        }),
      );
      if (reply[0] !== 'unknown') return toLook(rules, reply);
      seeds = await this.#sumUp(scope, rules, reply);
    }
    throw new AppError('overloaded', 'The sums of the budgets get lost as fast as they are made.', { retryAfterSeconds: 2 });
  }

  async #sumUp(scope: TenantScope, rules: BudgetRules, [, starts, found]: z.infer<typeof Unknown>): Promise<Record<string, unknown>> {
    const late = Object.fromEntries(found.map(([turnId, tokens, nanos]) => [turnId, { tokens, nanos }]));
    const seeds: Record<string, unknown> = {};
    for (const period of rules.periods) {
      if (starts.includes(toStart(period))) seeds[toStart(period)] = { id: randomUUID(), ...(await sumRecords(scope, period, late)) };
    }
    return seeds;
  }

  #refusal(spent: NonNullable<Look['spent']>, share: number, detail = `${describeSpent(spent, share)}.`): AppError {
    const { period } = spent;
    const leftSeconds = Math.max(1, Math.ceil((period.untilMs - this.#nowMs()) / 1000));
    const retryAfterSeconds = Math.min(leftSeconds, limits.budgetRetryMaxSeconds);
    // In per cent: how much a tenant may spend is nobody else's business.
    const headers = {
      'RateLimit-Policy': `"budget";q=100;qu="percent"`,
      RateLimit: `"budget";r=0;t=${String(leftSeconds)}`,
    };
    return new AppError('budget_exceeded', detail, { retryAfterSeconds, headers });
  }

  #report(scope: TenantScope, period: BudgetPeriod, { unit, percent, spent }: { unit: BudgetUnit; percent: number; spent: number }): void {
    const { webhookEvents, log } = this.#options;
    const facts: BudgetReached = {
      period: period.period,
      unit,
      percent,
      limit: inUnit({ tokens: period.limits.tokens ?? 0, nanos: period.limits.nanos ?? 0 }, unit),
      spent: inUnit({ tokens: spent, nanos: spent }, unit),
      until: new Date(period.untilMs).toISOString(),
    };
    log.warn({ tenantId: scope.tenantId, ...facts }, 'a budget is used up to a part of it');
    background(webhookEvents.emit(scope, budgetReached(facts, { periodFromMs: period.fromMs, nowMs: this.#nowMs() })), log);
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

interface TurnBudgetOptions {
  readonly scope: TenantScope;
  readonly turn: AcceptedTurn;
  readonly attempt: number;
  readonly used: Amount;
}

/** A model call that may be made: what it took is settled when it ends, nothing where it failed. */
export interface ReservedCall {
  settle(usage: ModelUsage | undefined): Promise<void>;
}

/** The model calls of one attempt at a turn. */
export class TurnBudget {
  readonly #budgets: Budgets;
  readonly #options: TurnBudgetOptions;
  #used: Amount;
  readonly #seeds: Record<string, string> = {};

  constructor(budgets: Budgets, options: TurnBudgetOptions) {
    this.#budgets = budgets;
    this.#options = options;
    this.#used = options.used;
  }

  /** @throws AppError `budget_exceeded` */
  async reserve(expected: Amount): Promise<ReservedCall> {
    const { scope, turn, attempt } = this.#options;
    // The script reads turn and attempt from it: what an attempt that died has left is given back to the next one.
    const id = `${turn.turnId}:${String(attempt)}:${randomUUID()}`;
    const isSchedule = turn.origin === 'schedule' || turn.origin === 'heartbeat';
    const look = await this.#budgets.reserveCall(scope, { isSchedule, turn: this.#total(), call: { id, ...expected } });
    if (look === undefined) return { settle: async () => Promise.resolve() };
    for (const period of look.periods) this.#seeds[toStart(period)] ??= period.seed;
    return {
      settle: async (usage) => {
        const took = usage === undefined ? nothing : sumUsage([usage]);
        this.#used = { tokens: this.#used.tokens + took.tokens, nanos: this.#used.nanos + took.nanos };
        await this.#budgets.settleCall(scope, look, { turn: this.#total(), call: { id, ...took } });
      },
    };
  }

  #total(): TurnTotal {
    const { turn, attempt } = this.#options;
    return { id: turn.turnId, attempt, ...this.#used, seeds: { ...this.#seeds } };
  }
}

async function paysItself(scope: TenantScope): Promise<boolean> {
  return scope.uses('settings/model-keys');
}

function budgetKeys(tenantId: string): string[] {
  return [keyOf.budgetSpent(tenantId), keyOf.budgetHeld(tenantId), queuePrefix];
}

/** Of both: the first day of a month begins when the month does, and each has a sum of its own. */
function toStart({ period, fromMs }: Pick<BudgetPeriod, 'period' | 'fromMs'>): string {
  return `${String(fromMs)}${period}`;
}

function toCounters(periods: readonly BudgetPeriod[]): { readonly start: string; readonly limits: BudgetPeriod['limits'] }[] {
  return periods.map((period) => ({ start: toStart(period), limits: period.limits }));
}

function toLook(rules: BudgetRules, [status, at, unit, tokens, nanos, sums]: z.infer<typeof Looked>): Look {
  const periods = rules.periods.map((period, index): CountedPeriod => {
    const [spentTokens = 0, spentNanos = 0, seed = ''] = sums[index] ?? [];
    return { ...period, tokens: spentTokens, nanos: spentNanos, seed };
  });
  const period = periods[at - 1];
  const spent = status === 'spent' && period !== undefined && unit !== '' ? { period, unit } : undefined;
  return { rules, periods, reserved: { tokens, nanos }, spent };
}

function toView({ rules, periods, reserved }: Look): BudgetsView {
  const items = periods.flatMap((period) =>
    (['tokens', 'usd'] as const).flatMap((unit) => {
      if (period.limits[unit === 'tokens' ? 'tokens' : 'nanos'] === undefined) return [];
      const limit = inUnit({ tokens: period.limits.tokens ?? 0, nanos: period.limits.nanos ?? 0 }, unit);
      const [spent, held] = [inUnit(period, unit), inUnit(reserved, unit)];
      const from = new Date(period.fromMs).toISOString();
      const until = new Date(period.untilMs).toISOString();
      const left = Math.max(0, limit - spent - held);
      return [{ period: period.period, unit, from, until, limit, spent, reserved: held, left, state: toState(spent / limit, rules) }];
    }),
  );
  return { timezone: rules.timezone, scheduleShare: rules.scheduleShare, items };
}

function toState(part: number, { scheduleShare }: BudgetRules): BudgetsView['items'][number]['state'] {
  if (part >= 1) return 'spent';
  if (part >= scheduleShare) return 'schedules_stopped';
  return part * 100 >= limits.budgetWarningPercent ? 'low' : 'open';
}

/** As in "The day's budget of 5 US dollars for model calls is spent". */
function describeSpent({ period, unit }: NonNullable<Look['spent']>, share: number): string {
  const { tokens: tokensMax = 0, nanos: nanosMax = 0 } = period.limits;
  const most = inUnit({ tokens: tokensMax, nanos: nanosMax }, unit);
  const amount = `${String(most)} ${unit === 'tokens' ? 'tokens' : 'US dollars'}`;
  const part = share === FULL_SHARE ? '' : ` to ${String(Math.round(share * 100))} per cent, where schedules stop`;
  const how = inUnit(period, unit) >= most * share ? `is spent${part}` : 'is reserved by model calls under way';
  const name = period.period;
  return `The ${name}'s budget of ${amount} for model calls ${how}; the next ${name} begins at ${new Date(period.untilMs).toISOString()}`;
}
