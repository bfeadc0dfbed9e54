import { routes, waitReasons, type WaitingEntry, type WaitingTenant, type WaitReason as Reason } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { SelectField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { Duration } from '../parts/times.tsx';
import { LoadedPages, useRead, useReadPages } from '../parts/use-api.tsx';
import { WaitReason } from '../parts/wait-reason.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { CancelTurnButton, LIVE_MS, TenantField, TenantLink, toTenantFilter, TurnLink } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Every turn that waits: for what, since when, behind whom, and what would start it. */
export function WaitingPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const tenant = read('tenant');
  const reason = shownReasons.find((known) => known === read('reason'));
  const waiting = useRead(routes.listWaiting, { query: { tenant: toTenantFilter(tenant), reason, limit: 1 } }, { everyMs: LIVE_MS });
  const options = [{ value: '', label: words.waiting.anyReason }, ...shownReasons.map((value) => ({ value, label: words.reasons[value] }))];
  return (
    <Page title={words.nav.waiting} about={words.waiting.about}>
      <div className="grid max-w-xl gap-3 sm:grid-cols-2">
        <TenantField value={tenant} onChange={(typed) => change({ tenant: typed })} />
        <SelectField
          label={words.waiting.reason}
          value={reason ?? ''}
          options={options}
          onChange={(chosen) => change({ reason: chosen })}
        />
      </div>
      {waiting.data?.isWhole === false && <p className="text-sm text-warn">{words.waiting.notWhole}</p>}
      <Loaded query={waiting}>
        {({ tenants }) =>
          tenants.length === 0 ? (
            <Empty title={words.waiting.none}>{words.waiting.noneNext}</Empty>
          ) : (
            tenants.map((one) => <TenantGroup key={one.tenantId} tenant={one} reason={reason} isAlone={tenants.length === 1} />)
          )
        }
      </Loaded>
    </Page>
  );
}

interface TenantGroupProps {
  readonly tenant: WaitingTenant;
  /** Only what waits for this is shown. */
  readonly reason: Reason | undefined;
  /** No other tenant waits: its conversations are shown at once. */
  readonly isAlone: boolean;
}

/** What waits of one tenant, in a line; its conversations, and who stands before whom, when it is opened. */
function TenantGroup({
  tenant: { tenantId, turns, oldestSeconds, running, places, reasons, recent },
  reason,
  isAlone,
}: TenantGroupProps): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const [isChosen, setChosen] = useState<boolean | null>(null);
  const isOpen = isChosen ?? isAlone;
  return (
    <details
      className="rounded-xl border bg-card"
      open={isOpen}
      onToggle={({ currentTarget }) => {
        if (currentTarget.open !== isOpen) setChosen(currentTarget.open);
      }}
    >
      <summary className="flex cursor-pointer flex-wrap items-center gap-x-4 gap-y-1 rounded-xl px-4 py-3 text-sm hover:bg-muted">
        <span className="font-semibold">{tenantId}</span>
        <span className="tabular-nums">{words.waiting.turns(turns, formats.number(turns))}</span>
        <span className="tabular-nums">{words.waiting.longest(formats.duration(oldestSeconds * 1000))}</span>
        <span className="tabular-nums">{words.waiting.running(formats.number(running), places === 0 ? '–' : formats.number(places))}</span>
        <Trend points={recent} />
        {reasons.map(({ reason: name, turns: count }) => (
          <Badge key={name} tone={name === 'no_worker' || name === 'no_free_slot' ? 'warn' : 'plain'}>
            {`${words.reasons[name]} ${formats.number(count)}`}
          </Badge>
        ))}
      </summary>
      {isOpen && (
        <div className="space-y-3 border-t p-3">
          <p className="flex flex-wrap gap-4 text-sm">
            <TenantLink tenant={tenantId} />
            <Link href={`/operate/turns?tenant=${tenantId}`} className="text-primary hover:underline">
              {words.nav.turns}
            </Link>
          </p>
          <Conversations tenant={tenantId} reason={reason} />
        </div>
      )}
    </details>
  );
}

/** One line over the last hour, as high as the most that waited, which its name says in words. */
function Trend({ points }: { readonly points: readonly number[] }): ReactNode {
  const words = useWords().operate.waiting;
  const formats = useFormats();
  const most = Math.max(0, ...points);
  const last = points.length - 1;
  const line = points.map((turns, at) => `${String(at)},${String(1 - turns / Math.max(1, most))}`).join(' ');
  return (
    <svg role="img" viewBox={`0 0 ${String(last)} 1`} preserveAspectRatio="none" className="h-5 w-24 overflow-visible text-warn">
      <title>{words.trend(formats.number(most))}</title>
      <polyline points={line} fill="none" stroke="currentColor" strokeWidth="1.5" vectorEffect="non-scaling-stroke" />
    </svg>
  );
}

function Conversations({ tenant, reason }: { readonly tenant: string; readonly reason: Reason | undefined }): ReactNode {
  const words = useWords().operate;
  const waiting = useReadPages(routes.listWaiting, { query: { tenant, reason, limit: 100 } }, { everyMs: LIVE_MS });
  return (
    <LoadedPages query={waiting} read={(page) => page.waiting} empty={<Empty title={words.waiting.none} />}>
      {(entries) => <WaitingTable entries={entries} />}
    </LoadedPages>
  );
}

const shownReasons = waitReasons.filter((reason) => reason !== 'staff');

function WaitingTable({ entries }: { readonly entries: readonly WaitingEntry[] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  return (
    <Table
      caption={words.nav.waiting}
      rows={entries}
      keyOf={({ turnId, reason }) => `${turnId} ${reason}`}
      columns={[
        {
          label: words.waiting.waited,
          cell: ({ waitedSeconds, since }) => <Duration ms={waitedSeconds * 1000} since={since} />,
          align: 'end',
        },
        { label: words.agent, cell: ({ agent }) => agent },
        { label: words.turns.turns, cell: ({ turns }) => formats.number(turns), align: 'end' },
        { label: words.turns.first, cell: ({ turnId }) => <TurnLink turnId={turnId} /> },
        { label: words.waiting.why, cell: (entry) => <Why entry={entry} /> },
        {
          label: words.actions,
          isActions: true,
          cell: ({ tenantId, turnId }) => <CancelTurnButton tenant={tenantId} turnId={turnId} />,
        },
      ]}
    />
  );
}

function Why({ entry }: { readonly entry: WaitingEntry }): ReactNode {
  const words = useWords().operate;
  const { reason, behind } = entry;
  return (
    <div className="max-w-prose">
      <Badge tone={reason === 'no_worker' || reason === 'no_free_slot' ? 'warn' : 'plain'}>{words.reasons[reason]}</Badge>{' '}
      <WaitReason waitsFor={entry} />
      {behind !== null && (
        <span className="text-muted-foreground">
          {' '}
          {words.waiting.behind} <TurnLink turnId={behind} />
        </span>
      )}
    </div>
  );
}
