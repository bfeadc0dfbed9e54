import { countDrift, DAY_MS, limits, routes, type CancelledTurns, type OperatedTenantDetails, type TenantDrift } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { buildAddress } from '../../../src/json-client.ts';
import { navigate } from '../navigation.ts';
import { Button } from '../parts/button.tsx';
import { Choice } from '../parts/choice.tsx';
import { ConfirmButton, Dialog } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Page, Section, Tile } from '../parts/page.tsx';
import { Empty, Held, Loaded, ServiceWords } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useExplain, useFormats, useWords } from '../words/words.tsx';
import { LimitsForm } from './limits-form.tsx';
import { SLOW_MS } from './shared.tsx';
import { TenantKeys } from './tenant-keys.tsx';

/** One tenant: what it may take, its keys, and what operators do with it as a whole. */
export function TenantPage({ tenant }: { readonly tenant: string }): ReactNode {
  const words = useWords().operate;
  const details = useRead(routes.getOperatedTenant, { params: { tenant } }, { everyMs: SLOW_MS });
  const about = (
    <>
      <Link href="/operate/tenants" className="text-primary hover:underline">
        {words.nav.tenants}
      </Link>{' '}
      ›
    </>
  );
  const actions = <Held value={details.data}>{(found) => found !== undefined && <Actions details={found} />}</Held>;
  return (
    <Page title={tenant} about={about} actions={actions}>
      <Loaded query={details}>
        {(found) => (
          <>
            <Facts details={found} />
            <Usage tenant={tenant} />
            <LimitsForm details={found} />
            <TenantKeys tenant={tenant} />
            <IndexSection tenant={tenant} />
            <Removal tenant={tenant} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ details: { tenantId, suspended } }: { readonly details: OperatedTenantDetails }): ReactNode {
  const { tenants } = useWords().operate;
  const affected = [routes.getOperatedTenant, routes.listTenants, routes.listOperatorAudit];
  const suspension = useChange(suspended ? routes.resumeTenant : routes.suspendTenant, affected);
  return (
    <>
      <a
        href={buildAddress(routes.exportTenant, { params: { tenant: tenantId } })}
        download
        className="inline-flex min-h-9 items-center rounded-lg border border-input bg-card px-3 text-sm font-medium hover:bg-muted"
      >
        {tenants.export}
      </a>
      <ConfirmButton
        label={suspended ? tenants.resume : tenants.suspend}
        title={suspended ? tenants.resumeTitle(tenantId) : tenants.suspendTitle(tenantId)}
        action={suspended ? tenants.resume : tenants.suspend}
        tone={suspended ? 'primary' : 'danger'}
        onConfirm={async () => suspension.mutateAsync({ params: { tenant: tenantId } })}
      >
        {suspended ? tenants.resumeText : tenants.suspendText}
      </ConfirmButton>
      <CancelTurns tenant={tenantId} />
    </>
  );
}

function Facts({ details }: { readonly details: OperatedTenantDetails }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const { tenantId, name, plan, suspended, problem, activeKeys, skills, waitingTurns } = details;
  const links = [
    { href: `/operate/waiting?tenant=${tenantId}`, label: words.nav.waiting },
    { href: `/operate/turns?tenant=${tenantId}`, label: words.nav.turns },
    { href: `/operate/failures?tenant=${tenantId}`, label: words.nav.failures },
    { href: `/operate/deliveries?tenant=${tenantId}`, label: words.nav.deliveries },
    { href: `/operate/audit?tenant=${tenantId}`, label: words.nav.audit },
  ];
  return (
    <>
      <p className="flex flex-wrap items-center gap-2 text-sm">
        {name !== null && <span className="font-medium">{name}</span>}
        <Badge>{plan}</Badge>
        <Badge tone={suspended ? 'warn' : 'ok'}>{suspended ? words.tenants.suspended : words.tenants.active}</Badge>
        {problem !== null && (
          <span className="text-danger">
            <ServiceWords>{problem}</ServiceWords>
          </span>
        )}
        {links.map(({ href, label }) => (
          <Link key={href} href={href} className="text-primary hover:underline">
            {label}
          </Link>
        ))}
      </p>
      <div className="grid grid-cols-3 gap-3">
        <Tile label={words.tenants.unanswered} value={formats.number(waitingTurns)} />
        <Tile label={words.tenants.activeKeys} value={formats.number(activeKeys)} />
        <Tile label={words.tenants.skills} value={formats.number(skills)} />
      </div>
    </>
  );
}

const usagePeriods = ['7', '30', '90'] as const;

/** What the model calls of the tenant have cost: money first. */
function Usage({ tenant }: { readonly tenant: string }): ReactNode {
  const { usage: words } = useWords().owner;
  const formats = useFormats();
  const [days, setDays] = useState<(typeof usagePeriods)[number]>('30');
  const [now] = useState(() => Date.now());
  const from = new Date(now - (Number(days) - 1) * DAY_MS).toISOString().slice(0, 'YYYY-MM-DD'.length);
  const usage = useRead(routes.listUsageOfTenants, { query: { tenant, from } }, { everyMs: SLOW_MS });
  const choice = (
    <Choice
      label={words.days}
      value={days}
      options={usagePeriods.map((value) => ({ value, label: words.lastDays(Number(value)) }))}
      onChange={setDays}
    />
  );
  return (
    <Section title={words.title} about={words.about} actions={choice}>
      <Loaded query={usage}>
        {([sum]) =>
          sum === undefined || sum.calls + sum.turns === 0 ? (
            <Empty title={words.none} />
          ) : (
            <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
              <Tile label={words.cost} value={sum.costUsd === null ? '–' : formats.usd(sum.costUsd)} />
              <Tile label={words.turns} value={formats.number(sum.turns)} note={`${words.calls}: ${formats.number(sum.calls)}`} />
              <Tile
                label={words.input}
                value={formats.number(sum.inputTokens)}
                note={`${words.cached}: ${formats.number(sum.cachedInputTokens)}`}
              />
              <Tile label={words.output} value={formats.number(sum.outputTokens)} />
            </div>
          )
        }
      </Loaded>
    </Section>
  );
}

/** Counts what waits and runs, asks why, and cancels it. */
function CancelTurns({ tenant }: { readonly tenant: string }): ReactNode {
  const { tenants } = useWords().operate;
  const [isOpen, setOpen] = useState(false);
  const count = useChange(routes.cancelTurns, []);
  const open = (): void => {
    count.mutate({ body: { tenant, dryRun: true } });
    setOpen(true);
  };
  return (
    <>
      <Button onClick={open}>{tenants.cancelAll}</Button>
      {isOpen && <CancelDialog tenant={tenant} counted={count.data ?? null} failure={count.error} onClose={() => setOpen(false)} />}
    </>
  );
}

interface CancelDialogProps {
  readonly tenant: string;
  /** Null as long as it is being counted. */
  readonly counted: CancelledTurns | null;
  readonly failure: unknown;
  readonly onClose: () => void;
}

function CancelDialog({ tenant, counted, failure, onClose }: CancelDialogProps): ReactNode {
  const words = useWords();
  const { tenants, bulk } = words.operate;
  const explain = useExplain();
  const [reason, setReason] = useState('');
  const affected = [routes.getOperatedTenant, routes.listWaiting, routes.listOperatedTurns, routes.getOverview, routes.listOperatorAudit];
  const cancel = useChange(routes.cancelTurns, affected);
  const error = failure ?? cancel.error;
  const total = counted === null ? 0 : counted.waiting + counted.running;
  const isDone = cancel.data !== undefined;
  const text = (): string => {
    if (cancel.data !== undefined) return tenants.cancelled(cancel.data.waiting + cancel.data.running);
    if (counted === null) return bulk.counting;
    return total === 0 ? tenants.cancelNone : tenants.cancelCount(counted.waiting, counted.running);
  };
  const buttons = (
    <>
      <Button onClick={onClose}>{isDone ? bulk.close : words.parts.cancel}</Button>
      {total > 0 && !isDone && (
        <Button
          tone="danger"
          disabled={reason.trim() === '' || cancel.isPending}
          onClick={() => cancel.mutate({ body: { tenant, dryRun: false, reason: reason.trim() } })}
        >
          {tenants.cancelAction(total)}
        </Button>
      )}
    </>
  );
  return (
    <Dialog title={tenants.cancelTitle(tenant)} buttons={buttons} error={error === null ? null : explain(error)} onClose={onClose}>
      <p>{tenants.cancelText}</p>
      <p role="status" className="my-3 rounded-lg bg-muted p-3 font-medium text-foreground">
        {text()}
      </p>
      {total > 0 && !isDone && (
        <TextField
          label={tenants.cancelReason}
          help={tenants.cancelReasonHelp}
          value={reason}
          maxLength={limits.auditReasonMaxCharacters}
          onChange={setReason}
        />
      )}
    </Dialog>
  );
}

/** Compares the index with the files, and puts right what differs. */
function IndexSection({ tenant }: { readonly tenant: string }): ReactNode {
  const { tenants } = useWords().operate;
  const explain = useExplain();
  const comparison = useChange(routes.reindexTenants, []);
  const rebuild = useChange(routes.reindexTenants, [routes.getOperatedTenant, routes.listOperatorAudit]);
  const [found] = comparison.data?.tenants ?? [];
  const [done] = rebuild.data?.tenants ?? [];
  const count = found === undefined ? 0 : countDrift(found);
  const text = (): string | null => {
    if (comparison.isPending) return tenants.comparing;
    if (comparison.error !== null) return explain(comparison.error);
    if (done !== undefined) return tenants.rebuilt(countDrift(done));
    if (found === undefined) return null;
    return count === 0 ? tenants.matches : tenants.differs(count);
  };
  const compare = (): void => {
    rebuild.reset();
    comparison.mutate({ body: { tenant, dryRun: true } });
  };
  const isDrifted = found !== undefined && count > 0 && done === undefined && !comparison.isPending;
  return (
    <Section title={tenants.index} about={tenants.indexAbout}>
      <p role="status" className="text-sm font-medium">
        {text()}
      </p>
      {isDrifted && <DriftTable report={found} />}
      <div className="flex flex-wrap gap-2">
        <Button disabled={comparison.isPending} onClick={compare}>
          {tenants.compare}
        </Button>
        {isDrifted && (
          <ConfirmButton
            label={tenants.rebuild}
            title={tenants.rebuildTitle(tenant)}
            action={tenants.rebuildAction(count)}
            tone="primary"
            onConfirm={async () => rebuild.mutateAsync({ body: { tenant, dryRun: false } })}
          >
            {tenants.rebuildText(count)}
          </ConfirmButton>
        )}
      </div>
    </Section>
  );
}

function DriftTable({ report: { drift } }: { readonly report: TenantDrift }): ReactNode {
  const { tenants } = useWords().operate;
  const formats = useFormats();
  const names: Readonly<Record<string, string>> = tenants.parts;
  return (
    <Table
      caption={tenants.index}
      rows={Object.entries(drift)}
      keyOf={([name]) => name}
      columns={[
        { label: tenants.part, cell: ([name]) => names[name] ?? name },
        { label: tenants.added, align: 'end', cell: ([, { added }]) => formats.number(added) },
        { label: tenants.changed, align: 'end', cell: ([, { changed }]) => formats.number(changed) },
        { label: tenants.removed, align: 'end', cell: ([, { removed }]) => formats.number(removed) },
      ]}
    />
  );
}

function Removal({ tenant }: { readonly tenant: string }): ReactNode {
  const { tenants } = useWords().operate;
  const [typed, setTyped] = useState('');
  const [isOpen, setOpen] = useState(false);
  const removal = useChange(routes.deleteTenant, [routes.listTenants]);
  return (
    <Section title={tenants.remove} about={tenants.removeAbout}>
      {isOpen ? (
        <div className="max-w-sm space-y-2">
          <TextField label={tenants.typeId(tenant)} value={typed} onChange={setTyped} autoComplete="off" />
          <ConfirmButton
            label={tenants.remove}
            buttonTone="danger"
            disabled={typed !== tenant}
            title={tenants.removeTitle(tenant)}
            action={tenants.removeAction}
            onConfirm={async () => {
              await removal.mutateAsync({ params: { tenant } });
              navigate('/operate/tenants');
            }}
          >
            {tenants.removeText}
          </ConfirmButton>
        </div>
      ) : (
        <Button onClick={() => setOpen(true)}>{tenants.removeOpen}</Button>
      )}
    </Section>
  );
}
