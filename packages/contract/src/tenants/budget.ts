import { z } from 'zod';
import { TimeZone } from '../values/values.ts';

const BudgetPeriod = z.enum(['day', 'month']);

/** What a budget counts: input and output tokens, or US dollars at the prices of the providers file. */
const BudgetUnit = z.enum(['tokens', 'usd']);

/** A part of a budget, 80 or 100 per cent of it, is used up: once in each period. */
export const BudgetReached = z.strictObject({
  period: BudgetPeriod,
  unit: BudgetUnit,
  percent: z.int(),
  limit: z.number(),
  spent: z.number(),
  /** When the period ends. */
  until: z.iso.datetime(),
});
export type BudgetReached = z.infer<typeof BudgetReached>;

/** One limit of a tenant, and how much of it is gone. */
export const BudgetView = z
  .object({
    period: BudgetPeriod,
    unit: BudgetUnit,
    from: z.iso.datetime(),
    until: z.iso.datetime(),
    limit: z.number(),
    spent: z.number().nonnegative(),
    /** Of model calls that are under way. */
    reserved: z.number().nonnegative(),
    left: z.number().nonnegative(),
    /** `low`: the owner has been warned; `schedules_stopped`: only people are answered; `spent`: nobody is. */
    state: z.enum(['open', 'low', 'schedules_stopped', 'spent']),
  })
  .meta({ id: 'Budget' });
export type BudgetView = z.infer<typeof BudgetView>;

/** A tenant's budgets. Days and months are those of its time zone. */
export const BudgetsView = z.object({ timezone: TimeZone, scheduleShare: z.number(), items: z.array(BudgetView) }).meta({ id: 'Budgets' });
export type BudgetsView = z.infer<typeof BudgetsView>;
