import { routes, type StuckDeliveries } from '@concierge/contract';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { askAnew, LoadedPages, useApi, useChange, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { BulkDialog, type BulkRequest } from './bulk-dialog.tsx';
import { SLOW_MS, TenantField, TenantLink, toTenantFilter } from './shared.tsx';
import { useFilters } from './use-filters.ts';

type Way = Pick<StuckDeliveries, 'tenantId' | 'channel'>;

/** Messages and webhook events that have not arrived, and dead letters sent again. */
export function DeliveriesPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const tenant = toTenantFilter(read('tenant'));
  const stuck = useReadPages(routes.listStuckDeliveries, { query: { tenant, limit: 100 } }, { everyMs: SLOW_MS });
  const [way, setWay] = useState<Way | null>(null);
  return (
    <Page title={words.nav.deliveries} about={words.deliveries.about}>
      <div className="max-w-xs">
        <TenantField value={read('tenant')} onChange={(typed) => change({ tenant: typed })} />
      </div>
      <LoadedPages query={stuck} read={(page) => page} empty={<Empty title={words.deliveries.none} />}>
        {(rows) => <StuckTable rows={rows} onRedrive={setWay} />}
      </LoadedPages>
      {way !== null && <RedriveDialog way={way} onClose={() => setWay(null)} />}
    </Page>
  );
}

function StuckTable({ rows, onRedrive }: { readonly rows: readonly StuckDeliveries[]; readonly onRedrive: (way: Way) => void }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const count = (value: number, isWhole: boolean): string =>
    isWhole ? formats.number(value) : words.deliveries.orMore(formats.number(value));
  return (
    <Table
      caption={words.nav.deliveries}
      rows={rows}
      keyOf={({ tenantId, channel }) => `${tenantId} ${channel}`}
      columns={[
        { label: words.tenant, cell: ({ tenantId }) => <TenantLink tenant={tenantId} /> },
        { label: words.deliveries.way, cell: ({ channel }) => (channel === 'events' ? words.deliveries.events : channel) },
        { label: words.deliveries.waiting, align: 'end', cell: ({ waiting, isWhole }) => count(waiting, isWhole) },
        { label: words.deliveries.retrying, align: 'end', cell: ({ retrying }) => formats.number(retrying) },
        {
          label: words.waiting.oldest,
          cell: ({ oldestWaitingAt }) => (oldestWaitingAt === null ? '–' : <RelativeTime at={oldestWaitingAt} />),
        },
        {
          label: words.deliveries.dead,
          align: 'end',
          cell: ({ dead, isWhole }) => <span className={dead > 0 ? 'font-semibold text-danger' : ''}>{count(dead, isWhole)}</span>,
        },
        { label: words.deliveries.last, cell: (row) => <LastDead row={row} /> },
        {
          label: words.actions,
          isActions: true,
          cell: ({ tenantId, channel, dead }) =>
            dead > 0 && <Button onClick={() => onRedrive({ tenantId, channel })}>{words.deliveries.redrive}</Button>,
        },
      ]}
    />
  );
}

function LastDead({ row: { tenantId, lastDead } }: { readonly row: StuckDeliveries }): ReactNode {
  const words = useWords().operate;
  const redrive = useChange(routes.redriveOperatedDelivery, [routes.listStuckDeliveries]);
  if (lastDead === null) return '–';
  const { id, acceptedAt, problem } = lastDead;
  return (
    <div className="max-w-xs space-y-1">
      <p>
        {problem ?? words.deliveries.noReason}{' '}
        <span className="text-muted-foreground">
          · <RelativeTime at={acceptedAt} />
        </span>
      </p>
      <ConfirmButton
        label={words.deliveries.redriveOne}
        buttonTone="quiet"
        title={words.deliveries.oneTitle}
        action={words.deliveries.oneAction}
        tone="primary"
        onConfirm={async () => redrive.mutateAsync({ params: { id }, query: { tenant: tenantId } })}
      >
        {words.deliveries.oneText(id, tenantId)}
      </ConfirmButton>
    </div>
  );
}

function RedriveDialog({ way: { tenantId, channel }, onClose }: { readonly way: Way; readonly onClose: () => void }): ReactNode {
  const { deliveries } = useWords().operate;
  const api = useApi();
  const queries = useQueryClient();
  const step = async ({ dryRun, cursor, signal }: BulkRequest) => {
    const body = { tenant: tenantId, channel, dryRun, limit: dryRun ? 50 : 10, ...(cursor !== undefined && { cursor }) };
    const done = await api.call(routes.redriveDeliveries, { body: routes.redriveDeliveries.body.schema.parse(body), signal });
    return {
      count: done.deliveries,
      tenants: done.tenants.map(({ tenantId: id, deliveries: count }) => ({ tenantId: id, count })),
      skipped: done.skipped.map(({ reason, deliveries: count }) => ({ reason, count })),
      nextCursor: done.nextCursor,
    };
  };
  return (
    <BulkDialog
      title={deliveries.bulkTitle(tenantId)}
      about={deliveries.bulkAbout}
      would={deliveries.would}
      did={deliveries.did}
      action={deliveries.action}
      reasons={deliveries.reasons}
      step={step}
      onClose={(isChanged) => {
        onClose();
        if (isChanged) void askAnew(queries, { queryKey: [routes.listStuckDeliveries.id] });
      }}
    />
  );
}
