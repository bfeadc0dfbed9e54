import { routes, type AuditEntry } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useReadPages } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { Id, SLOW_MS, TenantField, TenantLink, toTenantFilter, withKeys } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Who did what: operators, or everyone in one tenant. */
export function AuditPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const tenant = toTenantFilter(read('tenant'));
  const log = useReadPages(routes.listOperatorAudit, { query: { tenant, limit: 50 } }, { everyMs: SLOW_MS });
  return (
    <Page title={words.nav.audit} about={tenant === '' ? words.audit.about : words.audit.aboutTenant(tenant)}>
      <div className="max-w-xs">
        <TenantField value={read('tenant')} onChange={(typed) => change({ tenant: typed })} />
      </div>
      <LoadedPages query={log} read={(page) => page} empty={<Empty title={words.audit.none} />}>
        {(entries) => <AuditTable entries={entries} />}
      </LoadedPages>
    </Page>
  );
}

function AuditTable({ entries }: { readonly entries: readonly AuditEntry[] }): ReactNode {
  const words = useWords().operate;
  return (
    <Table
      caption={words.nav.audit}
      rows={withKeys(entries)}
      keyOf={({ key }) => key}
      columns={[
        { label: words.audit.when, cell: ({ at }) => <RelativeTime at={at} /> },
        {
          label: words.audit.who,
          cell: ({ by }) =>
            by.kind === 'operator' ? (
              words.audit.operator(by.via)
            ) : (
              <>
                {words.audit.key} <Id id={by.keyId} />
              </>
            ),
        },
        { label: words.audit.act, cell: ({ act }) => <code className="font-mono text-xs">{act}</code> },
        { label: words.tenant, cell: ({ tenantId }) => (tenantId === null ? '–' : <TenantLink tenant={tenantId} />) },
        {
          label: words.audit.target,
          cell: ({ target, reason, turns }) => {
            const parts = [
              target ?? [],
              turns === undefined ? [] : words.audit.turns(turns),
              reason === undefined ? [] : words.audit.reason(reason),
            ].flat();
            return <span className="text-xs wrap-anywhere">{parts.length === 0 ? '–' : parts.join(' · ')}</span>;
          },
        },
        { label: words.audit.request, cell: ({ requestId }) => (requestId === null ? '–' : <Id id={requestId} />) },
      ]}
    />
  );
}
