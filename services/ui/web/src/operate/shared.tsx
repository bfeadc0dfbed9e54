import { limits, MINUTE_MS, routes, tenantIdPattern } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { CopyButton } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { useNow } from '../parts/times.tsx';
import { useChange } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';

/** Pages change by themselves: as often as the gateway looks anew. */
export const LIVE_MS = 2000;
/** For what reads the disk or a database. */
export const SLOW_MS = 10_000;

export function TenantLink({ tenant }: { readonly tenant: string }): ReactNode {
  return (
    <Link href={`/operate/tenants/${encodeURIComponent(tenant)}`} className="font-medium text-primary underline-offset-2 hover:underline">
      {tenant}
    </Link>
  );
}

/** An id, shortened to what tells it from others, and copied whole. */
export function Id({ id }: { readonly id: string }): ReactNode {
  const { copy } = useWords().operate;
  const shown = id.length > 14 ? `${id.slice(0, 12)}…` : id;
  return (
    <span className="inline-flex items-center gap-0.5 whitespace-nowrap">
      <code className="font-mono text-xs" title={id}>
        {shown}
      </code>
      <CopyButton text={id} label={copy(id)} className="-my-1" />
    </span>
  );
}

/** A turn's id, which leads to the turn. */
export function TurnLink({ turnId }: { readonly turnId: string }): ReactNode {
  return (
    <Link
      href={`/operate/turns?id=${encodeURIComponent(turnId)}`}
      title={turnId}
      className="font-mono text-xs whitespace-nowrap text-primary underline-offset-2 hover:underline"
    >
      {turnId.slice(0, 12)}…
    </Link>
  );
}

const affectedByCancel = [
  routes.listWaiting,
  routes.listOperatedTurns,
  routes.getOperatedTurnTrace,
  routes.getOverview,
  routes.listOperatorAudit,
];

/** Asks before it cancels one turn, and why: the reason may be left out. */
export function CancelTurnButton({ tenant, turnId }: { readonly tenant: string; readonly turnId: string }): ReactNode {
  const { bulk, tenants, turns: words } = useWords().operate;
  // Outlives the dialog: a click beside it closes it, too.
  const [reason, setReason] = useState('');
  const cancel = useChange(routes.cancelOperatedTurn, affectedByCancel);
  return (
    <ConfirmButton
      label={words.cancel}
      title={words.cancelTitle}
      action={words.cancelAction}
      onConfirm={async () => cancel.mutateAsync({ params: { id: turnId }, query: { tenant, reason: reason.trim() } })}
    >
      <p className="mb-3">{words.cancelText(turnId, tenant)}</p>
      <TextField
        label={bulk.reason}
        help={tenants.cancelReasonHelp}
        value={reason}
        maxLength={limits.auditReasonMaxCharacters}
        onChange={setReason}
      />
    </ConfirmButton>
  );
}

export interface FilterFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Narrows a list to one tenant, whose whole id it takes. */
export function TenantField({ value, onChange }: FilterFieldProps): ReactNode {
  const words = useWords().operate;
  const problem = toTenantFilter(value) === value ? undefined : words.noTenantId;
  return <TextField label={words.tenant} placeholder={words.anyTenant} value={value} problem={problem} onChange={onChange} />;
}

/** Narrows a list to turns that failed with one code. */
export function CodeField({ value, onChange }: FilterFieldProps): ReactNode {
  return <TextField label={useWords().operate.turns.code} placeholder="provider_error" value={value} onChange={onChange} />;
}

/**
 * Rows that have no id, the newest first, each under a key that it keeps while newer ones come: what it says, and which
 * of those that say the same it is, from the oldest on.
 */
export function withKeys<Row extends object>(rows: readonly Row[]): readonly (Row & { readonly key: string })[] {
  const seen = new Map<string, number>();
  const keyed = rows.toReversed().map((row) => {
    const said = JSON.stringify(row);
    const before = seen.get(said) ?? 0;
    seen.set(said, before + 1);
    return { ...row, key: `${String(before)} ${said}` };
  });
  return keyed.toReversed();
}

/** What is no id is asked for nowhere. */
export function toTenantFilter(typed: string): string {
  return tenantIdPattern.test(typed) ? typed : '';
}

/** The time so long ago, to the minute: one that moves would be another question each time. */
export function useSince(agoMs: number): string {
  const now = useNow(MINUTE_MS);
  return new Date(Math.floor((now - agoMs) / MINUTE_MS) * MINUTE_MS).toISOString();
}

/** A key as it is shown once, to be copied. */
export function NewKey({ label, value }: { readonly label: string; readonly value: string }): ReactNode {
  const { copy } = useWords().operate;
  return (
    <p className="mt-2 flex items-center gap-2 rounded-lg bg-muted px-3 py-2 text-foreground">
      <span className="text-xs font-medium">{label}</span>
      <code className="min-w-0 flex-1 font-mono text-xs break-all">{value}</code>
      <CopyButton text={value} label={copy(label)} />
    </p>
  );
}
