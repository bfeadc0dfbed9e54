import { routes, TurnStatus, type OperatedTurn } from '@concierge/contract';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { BulkStep } from '../../../src/bulk-run.ts';
import { Button } from '../parts/button.tsx';
import { channelLabel } from '../parts/choice.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty, ServiceWords } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { Duration, RelativeTime } from '../parts/times.tsx';
import { askAnew, LoadedPages, useApi, useChange, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { BulkDialog, type BulkRequest } from './bulk-dialog.tsx';
import { RetryDialog } from './failures-page.tsx';
import { CancelTurnButton, CodeField, Id, SLOW_MS, TenantField, TenantLink, toTenantFilter } from './shared.tsx';
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
      <BulkActions filter={{ id, code, tenant: toTenantFilter(tenant), status }} />
      <LoadedPages query={turns} read={(page) => page} empty={<Empty title={words.turns.none}>{words.turns.noneNext}</Empty>}>
        {(found) => <TurnsTable turns={found} />}
      </LoadedPages>
    </Page>
  );
}

interface TurnFilter {
  readonly id: string;
  readonly code: string;
  readonly tenant: string;
  readonly status: OperatedTurn['status'] | undefined;
}

/** Not without a filter, and not by a code: what waits or runs has failed with none. */
function mayCancel({ id, code, tenant, status }: TurnFilter): boolean {
  const isNarrowed = id !== '' || tenant !== '' || status !== undefined;
  return isNarrowed && code === '' && (status === undefined || status === 'waiting' || status === 'running');
}

/** What may be done with all turns of the filter: what failed is tried again, what waits or runs is cancelled. */
function BulkActions({ filter }: { readonly filter: TurnFilter }): ReactNode {
  const { turns: words } = useWords().operate;
  const [opened, setOpened] = useState<{ readonly act: 'retry' | 'cancel'; readonly filter: TurnFilter; readonly until: string } | null>(
    null,
  );
  const { status } = filter;
  const open = (act: 'retry' | 'cancel'): void => setOpened({ act, filter, until: new Date().toISOString() });
  const close = (): void => setOpened(null);
  return (
    <div className="flex flex-wrap gap-2 empty:hidden">
      {(status === undefined || status === 'failed') && <Button onClick={() => open('retry')}>{words.retryAll}</Button>}
      {mayCancel(filter) && <Button onClick={() => open('cancel')}>{words.cancelAll}</Button>}
      {opened?.act === 'retry' && (
        <RetryDialog
          retried={{ ...opened.filter, since: new Date(0).toISOString(), until: opened.until }}
          title={words.retryAllTitle}
          about={words.retryAllAbout}
          onClose={close}
        />
      )}
      {opened?.act === 'cancel' && <CancelDialog filter={opened.filter} onClose={close} />}
    </div>
  );
}

/** Turns that are cancelled at once: each is one request. */
const CANCELLED_AT_ONCE = 10;

interface CancelDialogProps {
  readonly filter: TurnFilter;
  readonly onClose: () => void;
}

/** Counts turns that wait or run, asks, and cancels them: those that wait first, so that none of them begins. */
function CancelDialog({ filter: { id, tenant, status }, onClose }: CancelDialogProps): ReactNode {
  const { turns: words } = useWords().operate;
  const api = useApi();
  const queries = useQueryClient();
  // One that begins to run between the two lists stands in both.
  const seen = useRef(new Set<string>());
  const step = async ({ dryRun, cursor, reason, signal }: BulkRequest): Promise<BulkStep> => {
    if (cursor === undefined) seen.current = new Set();
    const known = seen.current;
    const [now, place] = readPlace(cursor, status);
    const query = { id, tenant, status: now, limit: dryRun ? 100 : CANCELLED_AT_ONCE, cursor: place };
    const { value, nextCursor } = await api.list(routes.listOperatedTurns, { query, signal });
    const meant = value.filter((turn) => turn.cancelling !== true && !known.has(turn.id));
    for (const turn of meant) known.add(turn.id);
    const cancel = async (turn: OperatedTurn) =>
      api.call(routes.cancelOperatedTurn, { params: { id: turn.id }, query: { tenant: turn.tenantId, reason }, signal });
    if (!dryRun) await Promise.all(meant.map(cancel));
    const isLast = nextCursor === null && (now === 'running' || status !== undefined);
    const tenants = Map.groupBy(meant, ({ tenantId }) => tenantId);
    return {
      count: meant.length,
      tenants: Array.from(tenants, ([tenantId, some]) => ({ tenantId, count: some.length })),
      skipped: [],
      nextCursor: isLast ? null : nextCursor === null ? 'running' : `${now} ${nextCursor}`,
    };
  };
  return (
    <BulkDialog
      title={words.cancelAllTitle}
      about={words.cancelAllAbout}
      would={words.wouldCancel}
      did={words.didCancel}
      action={words.cancelSome}
      reasons={{}}
      asksReason
      step={step}
      onClose={(isChanged) => {
        onClose();
        if (isChanged) void askAnew(queries);
      }}
    />
  );
}

/** Which state is worked through, and from where: a cursor of the dialog is the state and a cursor of its list. */
function readPlace(cursor: string | undefined, status: TurnFilter['status']): readonly ['waiting' | 'running', string | undefined] {
  const [state, place] = cursor?.split(' ', 2) ?? [status ?? 'waiting'];
  return [state === 'running' ? 'running' : 'waiting', place];
}

const tones = { waiting: 'warn', running: 'primary', done: 'ok', failed: 'danger', cancelled: 'plain' } as const;

function TurnsTable({ turns }: { readonly turns: readonly OperatedTurn[] }): ReactNode {
  const { operate: words, owner } = useWords();
  const { origins } = owner.turns;
  const formats = useFormats();
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
          cell: (turn) => <TurnActs turn={turn} />,
        },
      ]}
    />
  );
}

/** What may be done with one turn, or where its log is. */
function TurnActs({ turn: { tenantId, id, status, origin } }: { readonly turn: OperatedTurn }): ReactNode {
  const words = useWords().operate;
  const retry = useChange(routes.retryOperatedTurn, [routes.listOperatedTurns, routes.getOverview]);
  const call = { params: { id }, query: { tenant: tenantId } };
  if (status === 'waiting' || status === 'running') return <CancelTurnButton tenant={tenantId} turnId={id} />;
  return (
    <span className="inline-flex min-h-9 flex-wrap items-center gap-2">
      <Link href={`/operate/logs?id=${encodeURIComponent(id)}`} className="text-sm text-primary hover:underline">
        {words.logs.open}
      </Link>
      {/* Only what a client asked for is tried again. */}
      {(status === 'failed' || status === 'cancelled') && origin === 'api' && (
        <ConfirmButton
          label={words.turns.retry}
          title={words.turns.retryTitle}
          action={words.turns.retryAction}
          onConfirm={async () => retry.mutateAsync(call)}
        >
          {words.turns.retryText(id, tenantId)}
        </ConfirmButton>
      )}
    </span>
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
      {message !== undefined && (
        <p className="text-xs text-muted-foreground">
          <ServiceWords>{message}</ServiceWords>
        </p>
      )}
    </div>
  );
}
