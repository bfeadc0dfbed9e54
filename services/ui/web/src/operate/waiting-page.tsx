import { routes, waitReasons, type WaitingEntry } from '@concierge/contract';
import type { ReactNode } from 'react';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { SelectField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { Duration } from '../parts/times.tsx';
import { LoadedPages, useChange, useReadPages } from '../parts/use-api.tsx';
import { WaitReason } from '../parts/wait-reason.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { LIVE_MS, TenantField, TenantLink, toTenantFilter, TurnLink } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Every turn that waits: for what, since when, behind whom, and what would start it. */
export function WaitingPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const tenant = read('tenant');
  const reason = shownReasons.find((known) => known === read('reason'));
  const waiting = useReadPages(routes.listWaiting, { query: { tenant: toTenantFilter(tenant), reason, limit: 100 } }, { everyMs: LIVE_MS });
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
      {waiting.data?.pages.some(({ value }) => !value.isWhole) === true && <p className="text-sm text-warn">{words.waiting.notWhole}</p>}
      <LoadedPages query={waiting} read={(page) => page.waiting} empty={<Empty title={words.waiting.none}>{words.waiting.noneNext}</Empty>}>
        {(entries) => <WaitingTable entries={entries} />}
      </LoadedPages>
    </Page>
  );
}

const shownReasons = waitReasons.filter((reason) => reason !== 'staff');

function WaitingTable({ entries }: { readonly entries: readonly WaitingEntry[] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const cancel = useChange(routes.cancelOperatedTurn, [routes.listWaiting, routes.getOverview]);
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
        { label: words.tenant, cell: ({ tenantId }) => <TenantLink tenant={tenantId} /> },
        { label: words.agent, cell: ({ agent }) => agent },
        { label: words.turns.turns, cell: ({ turns }) => formats.number(turns), align: 'end' },
        { label: words.turns.first, cell: ({ turnId }) => <TurnLink turnId={turnId} /> },
        { label: words.waiting.why, cell: (entry) => <Why entry={entry} /> },
        {
          label: words.actions,
          isActions: true,
          cell: ({ tenantId, turnId }) => (
            <ConfirmButton
              label={words.turns.cancel}
              title={words.turns.cancelTitle}
              action={words.turns.cancelAction}
              onConfirm={async () => cancel.mutateAsync({ params: { id: turnId }, query: { tenant: tenantId } })}
            >
              {words.turns.cancelText(turnId, tenantId)}
            </ConfirmButton>
          ),
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
