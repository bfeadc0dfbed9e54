import { AppError, totalUsage, UsageDay, usageDays, type UsageRow, type UsageTotal } from '@concierge/contract';
import { Command, Option } from 'commander';
import { table, type CommandContext } from '../answer.ts';

const columns = ['day', 'agent', 'channel', 'model'] as const;

interface UsageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly by: (typeof columns)[number];
}

const HEAD = ['TURNS', 'CALLS', 'TOKENS IN', 'OF THEM CACHED', 'TOKENS OUT', 'COST'];

function cells({ turns, calls, inputTokens, cachedInputTokens, outputTokens, costUsd }: UsageTotal): string[] {
  const cost = costUsd === null ? 'no price known' : `$${costUsd.toFixed(4)}`;
  return [...[turns, calls, inputTokens, cachedInputTokens, outputTokens].map(String), cost];
}

function toDay(name: string, text: string | undefined): string | undefined {
  const day = UsageDay.optional().safeParse(text);
  if (!day.success) throw new AppError('invalid_request', `--${name} must be a day, as 2026-01-31.`);
  return day.data;
}

/** Usage from the index, in days of UTC: of one tenant in rows, or of each tenant its sum. */
async function showUsage({ deployment, answer }: CommandContext, tenantId: string | undefined, options: UsageOptions): Promise<void> {
  const days = usageDays({ from: toDay('from', options.from), to: toDay('to', options.to) }, Date.now());
  if (tenantId === undefined) {
    const operations = await deployment.tenantOperations();
    const items = await operations.listUsage(days);
    const text = table(
      ['TENANT', ...HEAD],
      items.map((item) => [item.tenantId, ...cells(item)]),
    );
    answer({ json: { ...days, items }, text: items.length === 0 ? 'There is no tenant yet: concierge tenant create <id>' : text });
    return;
  }
  const items = await (await deployment.scope(tenantId)).index.usage(days);
  const total = totalUsage(items);
  const groups = Object.entries(Object.groupBy(items, (row: UsageRow) => nameGroup(row, options.by))).toSorted(([one], [other]) =>
    one < other ? -1 : 1,
  );
  const rows = groups.map(([name, found = []]) => [name, ...cells(totalUsage(found))]);
  const text = table([options.by.toUpperCase(), ...HEAD], [...rows, ['all', ...cells(total)]]);
  answer({ json: { ...days, items, total }, text: items.length === 0 ? `No usage from ${days.from} to ${days.to}.` : text });
}

/** Models that were called with the tenant's own key are apart: the operator does not pay for them. */
function nameGroup(row: UsageRow, by: UsageOptions['by']): string {
  return by === 'model' && row.ownKey === true ? `${row.model} (own key)` : row[by];
}

export function usageCommand(context: CommandContext): Command {
  return new Command('usage')
    .argument('[tenant]', 'rows of this tenant instead of one for each')
    .option('--from <day>', 'first day, in UTC (default: 29 days before the last)')
    .option('--to <day>', 'last day, included (default: today)')
    .addOption(new Option('--by <column>', 'what a row of one tenant stands for').choices(columns).default('day'))
    .action(async (tenantId: string | undefined, options: UsageOptions) => showUsage(context, tenantId, options));
}
