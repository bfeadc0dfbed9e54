import { DAY_MS, HOUR_MS, routes, sumFailures, type FailureGroup } from '@concierge/contract';
import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { SelectField } from '../parts/fields.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, ServiceWords } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { askAnew, LoadedPages, useApi, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { BulkDialog, type BulkRequest } from './bulk-dialog.tsx';
import { CodeField, SLOW_MS, TenantField, TenantLink, toTenantFilter, TurnLink, useSince } from './shared.tsx';
import { useFilters } from './use-filters.ts';

const periods = { '1h': HOUR_MS, '24h': DAY_MS, '7d': 7 * DAY_MS } as const;
const periodNames = ['1h', '24h', '7d'] as const;

/** Which failed turns are tried again, accepted in this time; a part that is empty is no condition. */
export interface Retried {
  readonly code: string;
  readonly tenant: string;
  /** Of a turn or of a conversation. */
  readonly id: string;
  readonly since: string;
  readonly until: string;
}

/** Failed turns by cause, and all of a cause tried again. */
export function FailuresPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const period = periodNames.find((known) => known === read('period')) ?? '24h';
  const since = useSince(periods[period]);
  const [tenant, code] = [toTenantFilter(read('tenant')), read('code').trim()];
  const failures = useReadPages(routes.listFailures, { query: { since, tenant, code } }, { everyMs: SLOW_MS });
  const [retried, setRetried] = useState<Retried | null>(null);
  return (
    <Page title={words.nav.failures} about={words.failures.about}>
      <div className="grid gap-3 sm:grid-cols-3">
        <SelectField
          label={words.failures.period}
          value={period}
          options={periodNames.map((value) => ({ value, label: words.failures.periods[value] }))}
          onChange={(chosen) => change({ period: chosen })}
        />
        <TenantField value={read('tenant')} onChange={(typed) => change({ tenant: typed })} />
        <CodeField value={read('code')} onChange={(typed) => change({ code: typed })} />
      </div>
      <LoadedPages query={failures} read={(page) => page} empty={<Empty title={words.failures.none}>{words.failures.noneNext}</Empty>}>
        {(groups) => (
          <Causes
            groups={sumFailures(groups)}
            onRetry={(group) => setRetried({ code: group.code, tenant, id: '', since, until: new Date().toISOString() })}
          />
        )}
      </LoadedPages>
      {retried !== null && (
        <RetryDialog
          retried={retried}
          title={words.failures.retryTitle(retried.code)}
          about={retried.tenant === '' ? words.failures.retryAbout : words.failures.retryAboutTenant(retried.tenant)}
          onClose={() => setRetried(null)}
        />
      )}
    </Page>
  );
}

function Causes({
  groups,
  onRetry,
}: {
  readonly groups: readonly FailureGroup[];
  readonly onRetry: (group: FailureGroup) => void;
}): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  return (
    <Table
      caption={words.nav.failures}
      rows={groups}
      keyOf={({ code, model, message }) => JSON.stringify([code, model, message])}
      columns={[
        {
          label: words.turns.turns,
          align: 'end',
          cell: ({ turns }) => <span className="font-semibold text-danger">{formats.number(turns)}</span>,
        },
        {
          label: words.failures.cause,
          cell: ({ code, model, message }) => (
            <div className="max-w-md">
              <code className="font-mono text-xs">{code}</code>
              {model !== null && <span className="text-xs text-muted-foreground"> {model}</span>}
              <p>
                <ServiceWords>{message}</ServiceWords>
              </p>
            </div>
          ),
        },
        {
          label: words.nav.tenants,
          cell: ({ tenants }) => (
            <>
              <TenantLink tenant={tenants[0]?.tenantId ?? ''} />
              {tenants.length > 1 && ` ${words.failures.andMore(tenants.length - 1)}`}
            </>
          ),
        },
        { label: words.failures.first, cell: ({ firstAt }) => <RelativeTime at={firstAt} /> },
        { label: words.failures.last, cell: ({ lastAt }) => <RelativeTime at={lastAt} /> },
        { label: words.failures.example, cell: ({ example }) => <TurnLink turnId={example.turnId} /> },
        {
          label: words.actions,
          isActions: true,
          cell: (group) => <Button onClick={() => onRetry(group)}>{words.failures.retry}</Button>,
        },
      ]}
    />
  );
}

export interface RetryDialogProps {
  readonly retried: Retried;
  readonly title: string;
  readonly about: string;
  readonly onClose: () => void;
}

/** Counts failed turns, asks, and tries them again a few at a time. */
export function RetryDialog({ retried, title, about, onClose }: RetryDialogProps): ReactNode {
  const { failures } = useWords().operate;
  const api = useApi();
  const queries = useQueryClient();
  const { code, since, until, tenant, id } = retried;
  const named = { ...(code !== '' && { code }), ...(tenant !== '' && { tenant }), ...(id !== '' && { id }) };
  const step = async ({ dryRun, cursor, signal }: BulkRequest) => {
    const filter = { ...named, since, until, ...(cursor !== undefined && { cursor }) };
    const done = await api.call(routes.retryTurns, { body: { ...filter, dryRun, limit: dryRun ? 50 : 10 }, signal });
    return {
      count: done.turns,
      tenants: done.tenants.map(({ tenantId, turns }) => ({ tenantId, count: turns })),
      skipped: done.skipped.map(({ reason, turns }) => ({ reason, count: turns })),
      nextCursor: done.nextCursor,
    };
  };
  return (
    <BulkDialog
      title={title}
      about={about}
      would={failures.would}
      did={failures.did}
      action={failures.action}
      reasons={failures.reasons}
      step={step}
      onClose={(isChanged) => {
        onClose();
        if (isChanged) void askAnew(queries);
      }}
    />
  );
}
