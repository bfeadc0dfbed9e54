import { logLevels, routes, type LogLine } from '@concierge/contract';
import type { ReactNode } from 'react';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useReadPages } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { Id, SLOW_MS, TenantLink, TurnLink, withKeys } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Shorter ones lead to nothing. */
const ID_MIN_CHARACTERS = 3;

/** What the services said: warnings, errors, and all of a turn that has one. */
export function LogsPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const level = logLevels.find((known) => known === read('level')) ?? 'info';
  const id = read('id').trim();
  const query = { level, id: id.length < ID_MIN_CHARACTERS ? undefined : id, limit: 100 };
  const lines = useReadPages(routes.listLogLines, { query }, { everyMs: SLOW_MS });
  return (
    <Page title={words.nav.logs} about={words.logs.about}>
      <div className="grid max-w-2xl gap-3 sm:grid-cols-2">
        <TextField label={words.logs.id} type="search" value={read('id')} onChange={(typed) => change({ id: typed })} />
        <SelectField
          label={words.logs.level}
          value={level}
          options={logLevels.map((value) => ({ value, label: words.logs.levels[value] }))}
          onChange={(chosen) => change({ level: chosen === 'info' ? '' : chosen })}
        />
      </div>
      <LoadedPages query={lines} read={(page) => page} empty={<Empty title={words.logs.none}>{words.logs.noneNext}</Empty>}>
        {(found) => <LinesTable lines={found} />}
      </LoadedPages>
    </Page>
  );
}

const tones = { info: 'plain', warn: 'warn', error: 'danger', fatal: 'danger' } as const;

function LinesTable({ lines }: { readonly lines: readonly LogLine[] }): ReactNode {
  const words = useWords().operate;
  return (
    <Table
      caption={words.nav.logs}
      rows={withKeys(lines)}
      keyOf={({ key }) => key}
      columns={[
        { label: words.audit.when, cell: ({ at }) => <RelativeTime at={at} /> },
        { label: words.logs.level, cell: ({ level }) => <Badge tone={tones[level]}>{level}</Badge> },
        { label: words.logs.service, cell: ({ service }) => service },
        { label: words.tenant, cell: ({ tenantId }) => (tenantId === null ? '–' : <TenantLink tenant={tenantId} />) },
        { label: words.turns.turn, cell: ({ turnId }) => (turnId === null ? '–' : <TurnLink turnId={turnId} />) },
        { label: words.audit.request, cell: ({ requestId }) => (requestId === null ? '–' : <Id id={requestId} />) },
        {
          label: words.logs.message,
          cell: ({ message, line }) => (
            <details className="min-w-48">
              <summary className="cursor-pointer wrap-anywhere">{message === '' ? '–' : message}</summary>
              <code className="mt-1 block font-mono text-xs wrap-anywhere whitespace-pre-wrap">{line}</code>
            </details>
          ),
        },
      ]}
    />
  );
}
