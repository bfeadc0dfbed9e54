import { routes, TurnStatus, type OperatedTurn } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { channelLabel } from '../parts/choice.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { Duration, RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useChange, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { CodeField, Id, SLOW_MS, TenantField, TenantLink, toTenantFilter } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Turns of all tenants, found by any id, state, tenant or error. */
export function TurnsPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const status = TurnStatus.options.find((known) => known === read('status'));
  const [id, code, tenant] = [read('id').trim(), read('code').trim(), read('tenant')];
  const query = { id, code, tenant: toTenantFilter(tenant), status, limit: 50 };
  const turns = useReadPages(routes.listOperatedTurns, { query }, { everyMs: SLOW_MS });
  const options = [
    { value: '', label: words.turns.anyStatus },
    ...TurnStatus.options.map((value) => ({ value, label: words.turns.status[value] })),
  ];
  return (
    <Page title={words.nav.turns} about={words.turns.about}>
      <div className="grid gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <TextField label={words.turns.id} type="search" value={read('id')} onChange={(typed) => change({ id: typed })} />
        <TenantField value={tenant} onChange={(typed) => change({ tenant: typed })} />
        <SelectField label={words.state} value={status ?? ''} options={options} onChange={(chosen) => change({ status: chosen })} />
        <CodeField value={read('code')} onChange={(typed) => change({ code: typed })} />
      </div>
      <LoadedPages query={turns} read={(page) => page} empty={<Empty title={words.turns.none}>{words.turns.noneNext}</Empty>}>
        {(found) => <TurnsTable turns={found} />}
      </LoadedPages>
    </Page>
  );
}

const tones = { waiting: 'warn', running: 'primary', done: 'ok', failed: 'danger', cancelled: 'plain' } as const;

function TurnsTable({ turns }: { readonly turns: readonly OperatedTurn[] }): ReactNode {
  const { operate: words, owner } = useWords();
  const { origins } = owner.turns;
  const formats = useFormats();
  const cancel = useChange(routes.cancelOperatedTurn, [routes.listOperatedTurns, routes.getOverview]);
  return (
    <Table
      caption={words.nav.turns}
      rows={turns}
      keyOf={({ tenantId, id }) => `${tenantId} ${id}`}
      columns={[
        { label: words.turns.accepted, cell: ({ acceptedAt }) => <RelativeTime at={acceptedAt} /> },
        { label: words.tenant, cell: ({ tenantId }) => <TenantLink tenant={tenantId} /> },
        { label: words.turns.turn, cell: ({ tenantId, id }) => <LifeLink tenant={tenantId} id={id} /> },
        { label: words.turns.conversation, cell: ({ contact_id: contactId }) => <Id id={contactId} /> },
        {
          label: words.agent,
          cell: ({ agent, channel, origin }) => (
            <>
              {agent} <span className="text-xs text-muted-foreground">{`${channelLabel(channel)} · ${origins[origin]}`}</span>
            </>
          ),
        },
        { label: words.state, cell: ({ status, error }) => <State status={status} code={error?.code} message={error?.message} /> },
        {
          label: words.turns.took,
          align: 'end',
          cell: ({ startedAt, endedAt }) =>
            startedAt === null || endedAt === null ? '–' : <Duration ms={Date.parse(endedAt) - Date.parse(startedAt)} since={startedAt} />,
        },
        {
          label: words.turns.tokens,
          align: 'end',
          cell: ({ usage }) => `${formats.number(usage.inputTokens)} → ${formats.number(usage.outputTokens)}`,
        },
        {
          label: words.actions,
          isActions: true,
          cell: ({ tenantId, id, status }) =>
            status !== 'waiting' && status !== 'running' ? (
              <Link href={`/operate/logs?id=${encodeURIComponent(id)}`} className="text-sm text-primary hover:underline">
                {words.logs.open}
              </Link>
            ) : (
              <ConfirmButton
                label={words.turns.cancel}
                title={words.turns.cancelTitle}
                action={words.turns.cancelAction}
                onConfirm={async () => cancel.mutateAsync({ params: { id }, query: { tenant: tenantId } })}
              >
                {words.turns.cancelText(id, tenantId)}
              </ConfirmButton>
            ),
        },
      ]}
    />
  );
}

/** The turn's id, copied whole, and its life behind it. */
function LifeLink({ tenant, id }: { readonly tenant: string; readonly id: string }): ReactNode {
  const words = useWords().operate;
  return (
    <span className="inline-flex items-center gap-1 whitespace-nowrap">
      <Id id={id} />
      <Link href={`/operate/turns/${encodeURIComponent(tenant)}/${encodeURIComponent(id)}`} className="text-primary underline">
        {words.turns.life}
      </Link>
    </span>
  );
}

interface StateProps {
  readonly status: OperatedTurn['status'];
  readonly code: string | undefined;
  readonly message: string | undefined;
}

function State({ status, code, message }: StateProps): ReactNode {
  const words = useWords().operate;
  return (
    <div className="max-w-xs">
      <Badge tone={tones[status]}>{words.turns.status[status]}</Badge>{' '}
      {code !== undefined && <code className="font-mono text-xs">{code}</code>}
      {message !== undefined && <p className="text-xs text-muted-foreground">{message}</p>}
    </div>
  );
}
