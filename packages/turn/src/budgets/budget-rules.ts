import { DAY_MS, limits, type BudgetView, type TenantSettings } from '@concierge/contract';
import { ZoneClock } from '@concierge/tenant';

export type BudgetUnit = BudgetView['unit'];

/** One period of a tenant that has a limit. */
export interface BudgetPeriod {
  readonly period: BudgetView['period'];
  readonly fromMs: number;
  readonly untilMs: number;
  /** Dollars as billionths: whole numbers add up to the same sum in any order. */
  readonly limits: { readonly tokens?: number; readonly nanos?: number };
}

/** A tenant's budgets at one moment. */
export interface BudgetRules {
  readonly timezone: string;
  readonly scheduleShare: number;
  /** Not empty. */
  readonly periods: readonly BudgetPeriod[];
}

/** What was spent, or is to be. */
export interface Amount {
  readonly tokens: number;
  readonly nanos: number;
}

export const nothing: Amount = { tokens: 0, nanos: 0 };

const NANO = 1e9;

export function toNanos(usd: number): number {
  return Math.round(usd * NANO);
}

export function inUnit(amount: Amount, unit: BudgetUnit): number {
  return unit === 'tokens' ? amount.tokens : amount.nanos / NANO;
}

/** The budgets of a tenant with these settings; undefined when it has none. */
export function budgetRules(
  { limits: own, timezone }: Pick<TenantSettings, 'limits' | 'timezone'>,
  nowMs: number,
): BudgetRules | undefined {
  if (own === undefined) return undefined;
  const day = limitsFrom(own.tokensPerDay, own.usdPerDay);
  const month = limitsFrom(own.tokensPerMonth, own.usdPerMonth);
  if (day === undefined && month === undefined) return undefined;
  const zone = own.budgetTimezone ?? timezone ?? 'UTC';
  const clock = new ZoneClock(zone);
  return {
    timezone: zone,
    scheduleShare: own.scheduleBudgetShare ?? limits.budgetScheduleShare,
    periods: [
      ...(day === undefined ? [] : [{ period: 'day' as const, ...dayAt(clock, nowMs), limits: day }]),
      ...(month === undefined ? [] : [{ period: 'month' as const, ...monthAt(clock, nowMs), limits: month }]),
    ],
  };
}

function limitsFrom(tokens: number | undefined, usd: number | undefined): BudgetPeriod['limits'] | undefined {
  if (tokens === undefined && usd === undefined) return undefined;
  return { ...(tokens !== undefined && { tokens }), ...(usd !== undefined && { nanos: Math.max(1, toNanos(usd)) }) };
}

type Span = Pick<BudgetPeriod, 'fromMs' | 'untilMs'>;

function dayAt(clock: ZoneClock, nowMs: number): Span {
  const startMs = Math.floor(clock.wallAt(nowMs) / DAY_MS) * DAY_MS;
  return { fromMs: clock.toInstant(startMs).atMs, untilMs: clock.toInstant(startMs + DAY_MS).atMs };
}

function monthAt(clock: ZoneClock, nowMs: number): Span {
  const wall = new Date(clock.wallAt(nowMs));
  const findStart = (months: number): number => clock.toInstant(Date.UTC(wall.getUTCFullYear(), wall.getUTCMonth() + months, 1)).atMs;
  return { fromMs: findStart(0), untilMs: findStart(1) };
}
