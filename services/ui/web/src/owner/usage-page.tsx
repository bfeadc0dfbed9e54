import { DAY_MS, routes, totalUsage, type BudgetView, type UsageRow, type UsageTotal } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { useSearchParams } from 'wouter';
import { channelLabel, Choice } from '../parts/choice.tsx';
import { Page, Section, Tile } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';

const periods = ['7', '30', '90'] as const;
const groups = ['day', 'agent', 'channel', 'model'] as const;
type Group = (typeof groups)[number];

interface Sum extends UsageTotal {
  readonly name: string;
}

/** What model calls have cost: in all, and by one of four things. */
export function UsagePage(): ReactNode {
  const { owner } = useWords();
  const words = owner.usage;
  const formats = useFormats();
  const [search, setSearch] = useSearchParams();
  const days = periods.find((period) => period === search.get('days')) ?? '30';
  const by = groups.find((group) => group === search.get('by')) ?? 'day';
  const choose = (changed: Readonly<Record<string, string>>): void => setSearch({ days, by, ...changed }, { replace: true });
  const [now] = useState(() => Date.now());
  const from = new Date(now - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 'YYYY-MM-DD'.length);
  const query = useRead(routes.getUsage, { query: { from } });
  const labels = { day: words.day, agent: owner.agent, channel: owner.channel, model: words.model };
  return (
    <Page title={words.title} about={words.about}>
      <div className="flex flex-wrap gap-3">
        <Choice
          label={words.days}
          value={days}
          options={periods.map((value) => ({ value, label: words.lastDays(Number(value)) }))}
          onChange={(value) => choose({ days: value })}
        />
        <Choice
          label={words.by}
          value={by}
          options={groups.map((value) => ({ value, label: labels[value] }))}
          onChange={(value) => choose({ by: value })}
        />
      </div>
      <Loaded query={query}>
        {({ items, total, budgets }) => (
          <>
            <Totals total={total} />
            {budgets !== undefined && <Budgets budgets={budgets.items} />}
            {items.length === 0 ? (
              <Empty title={words.none}>{words.noneHelp}</Empty>
            ) : (
              <SumsTable label={labels[by]} sums={sumBy(items, by)} write={by === 'day' ? (day) => formats.day(day) : String} />
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}

/** The dearest first; days, the latest first. */
function sumBy(items: readonly UsageRow[], by: Group): Sum[] {
  const sums = Array.from(
    Map.groupBy(items, (row) => row[by]),
    ([key, rows]) => ({ name: by === 'channel' ? channelLabel(rows[0]?.channel ?? 'web') : key, ...totalUsage(rows) }),
  );
  if (by === 'day') return sums.toSorted((one, other) => other.name.localeCompare(one.name));
  return sums.toSorted((one, other) => (other.costUsd ?? 0) - (one.costUsd ?? 0) || other.inputTokens - one.inputTokens);
}

function Totals({ total }: { readonly total: UsageTotal }): ReactNode {
  const words = useWords().owner.usage;
  const formats = useFormats();
  return (
    <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Tile label={words.cost} value={total.costUsd === null ? '–' : formats.usd(total.costUsd)} />
      <Tile label={words.turns} value={formats.number(total.turns)} />
      <Tile
        label={words.input}
        value={formats.number(total.inputTokens)}
        note={`${formats.percent(total.inputTokens === 0 ? 0 : total.cachedInputTokens / total.inputTokens)} ${words.cached}`}
      />
      <Tile label={words.output} value={formats.number(total.outputTokens)} />
    </div>
  );
}

function Budgets({ budgets }: { readonly budgets: readonly BudgetView[] }): ReactNode {
  const words = useWords().owner.usage;
  const formats = useFormats();
  const write = (unit: BudgetView['unit'], value: number): string =>
    unit === 'usd' ? formats.usd(value) : `${formats.number(value)} ${words.tokens}`;
  return (
    <Section title={words.budgets}>
      <ul className="grid gap-3 sm:grid-cols-2">
        {budgets.map(({ period, unit, limit, spent, left, state }) => (
          <li key={`${period} ${unit}`} className="rounded-xl border bg-card px-4 py-3 text-sm">
            <span className="flex justify-between gap-3">
              <span>
                {write(unit, limit)} {words.periods[period]}
              </span>
              <span className={state === 'open' ? '' : 'text-danger'}>{words.left(write(unit, left))}</span>
            </span>
            <meter className="mt-1 w-full" min={0} max={limit} value={Math.min(spent, limit)} aria-label={`${write(unit, spent)}`} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface SumsTableProps {
  readonly label: string;
  readonly sums: readonly Sum[];
  /** How a name is shown. */
  readonly write: (name: string) => string;
}

function SumsTable({ label, sums, write }: SumsTableProps): ReactNode {
  const words = useWords().owner.usage;
  const formats = useFormats();
  const columns: readonly Column<Sum>[] = [
    { label, cell: ({ name }) => write(name) },
    { label: words.cost, align: 'end', cell: ({ costUsd }) => (costUsd === null ? '–' : formats.usd(costUsd)) },
    { label: words.turns, align: 'end', cell: ({ turns }) => formats.number(turns) },
    { label: words.calls, align: 'end', cell: ({ calls }) => formats.number(calls) },
    { label: words.input, align: 'end', cell: ({ inputTokens }) => formats.number(inputTokens) },
    { label: words.output, align: 'end', cell: ({ outputTokens }) => formats.number(outputTokens) },
  ];
  return <Table caption={words.title} columns={columns} rows={sums} keyOf={({ name }) => name} />;
}
