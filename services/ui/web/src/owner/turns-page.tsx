import { builtInAgents, channelNames, errorCodeNames, routes, TurnStatus, type TurnView } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { channelLabel } from '../parts/choice.tsx';
import { SelectField } from '../parts/fields.tsx';
import { Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { Duration, RelativeTime, useNow } from '../parts/times.tsx';
import { LoadedPages, useRead, useReadPages } from '../parts/use-api.tsx';
import { WaitReason } from '../parts/wait-reason.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { useFilters } from '../operate/use-filters.ts';
import { StatusBadge } from './owner-parts.tsx';

const names = ['status', 'agent', 'channel', 'origin', 'error'] as const;
const origins = ['api', 'webhook', 'schedule', 'heartbeat', 'subagent', 'handoff', 'person', 'retraction'] as const;

/** All turns of the tenant, narrowed by what the address says. */
export function TurnsPage(): ReactNode {
  const { turns } = useWords().owner;
  const { read, change } = useFilters();
  const filters = Object.fromEntries(names.map((name) => [name, read(name)]));
  const query = useReadPages(routes.listTurns, { query: { ...filters, contact_id: read('contact_id'), limit: 25 } });
  const isNarrow = Object.values(filters).some((value) => value !== '');
  const empty = <Empty title={isNarrow ? turns.none : turns.noneYet}>{isNarrow ? undefined : turns.noneYetHelp}</Empty>;
  return (
    <Page title={turns.title} about={turns.about}>
      <FilterFields filters={filters} onChoose={(name, value) => change({ [name]: value })} />
      <LoadedPages query={query} read={(page) => page} empty={empty}>
        {(items) => <TurnsTable turns={items} />}
      </LoadedPages>
    </Page>
  );
}

interface FilterFieldsProps {
  readonly filters: Readonly<Record<string, string>>;
  readonly onChoose: (name: string, value: string) => void;
}

function FilterFields({ filters, onChoose }: FilterFieldsProps): ReactNode {
  const words = useWords();
  const { owner } = words;
  const agents = useRead(routes.listAgents).data ?? builtInAgents;
  const all = { value: '', label: owner.all };
  const fields = [
    { name: 'status', label: owner.state, options: TurnStatus.options.map((value) => ({ value, label: owner.status[value] })) },
    { name: 'agent', label: owner.agent, options: agents.map(({ name }) => ({ value: name, label: name })) },
    { name: 'channel', label: owner.channel, options: channelNames.map((value) => ({ value, label: channelLabel(value) })) },
    { name: 'origin', label: owner.turns.origin, options: origins.map((value) => ({ value, label: owner.turns.origins[value] })) },
    { name: 'error', label: owner.turns.error, options: errorCodeNames.map((value) => ({ value, label: value })) },
  ] as const;
  return (
    <div className="grid grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-5">
      {fields.map(({ name, label, options }) => (
        <SelectField<string>
          key={name}
          label={label}
          value={filters[name] ?? ''}
          options={[all, ...options]}
          onChange={(value) => onChoose(name, value)}
        />
      ))}
    </div>
  );
}

function TurnsTable({ turns: rows }: { readonly turns: readonly TurnView[] }): ReactNode {
  const { owner } = useWords();
  const formats = useFormats();
  const now = useNow();
  const columns: readonly Column<TurnView>[] = [
    {
      label: owner.turns.asked,
      cell: ({ id, input, origin }) => (
        <Link href={`/turns/${id}`} className="line-clamp-2 font-medium text-primary hover:underline">
          {input ?? `(${owner.turns.origins[origin]})`}
        </Link>
      ),
    },
    {
      label: owner.state,
      cell: ({ status, error, waitsFor }) => (
        <>
          <StatusBadge status={status} />
          {waitsFor !== undefined && (
            <p className="mt-1 min-w-48 text-xs">
              <WaitReason waitsFor={waitsFor} />
            </p>
          )}
          {error !== null && <span className="ml-1 text-xs text-danger">{error.code}</span>}
        </>
      ),
    },
    { label: owner.agent, cell: ({ agent }) => agent },
    { label: owner.channel, cell: ({ channel }) => channelLabel(channel) },
    {
      label: owner.turns.origin,
      cell: ({ origin, simulated }) => owner.turns.origins[origin] + (simulated === true ? ` (${owner.turns.simulated})` : ''),
    },
    { label: owner.when, cell: ({ acceptedAt }) => <RelativeTime at={acceptedAt} /> },
    { label: owner.turns.took, align: 'end', cell: (turn) => <Duration ms={measureTurn(turn, now)} since={turn.acceptedAt} /> },
    { label: owner.turns.cost, align: 'end', cell: ({ costUsd }) => (costUsd == null ? '–' : formats.usd(costUsd)) },
  ];
  return <Table caption={owner.turns.title} columns={columns} rows={rows} keyOf={({ id }) => id} />;
}

/** How long a turn has taken, or takes already. */
function measureTurn({ acceptedAt, endedAt }: Pick<TurnView, 'acceptedAt' | 'endedAt'>, nowMs: number): number {
  return Math.max(0, (endedAt === null ? nowMs : Date.parse(endedAt)) - Date.parse(acceptedAt));
}
