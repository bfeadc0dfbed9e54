import { OperatedTenantPatch, routes, TenantPlan, type OperatedTenantDetails } from '@concierge/contract';
import type { ReactNode, SubmitEvent } from 'react';
import { Button } from '../parts/button.tsx';
import { SelectField, TextField, useTyped } from '../parts/fields.tsx';
import { Section } from '../parts/page.tsx';
import { useChange } from '../parts/use-api.tsx';
import { useExplain, useWords } from '../words/words.tsx';

/** Those that are numbers; `budgetTimezone` follows the tenant's own zone unless an operator fixes it by command. */
const limitNames = [
  'requestsPerHour',
  'tokensPerDay',
  'tokensPerMonth',
  'usdPerDay',
  'usdPerMonth',
  'memoryBytes',
  'workspaceBytes',
  'streamCharactersPerHour',
] as const;
type LimitName = (typeof limitNames)[number];
type FieldName = 'plan' | 'name' | LimitName;

/** Plan, name and limits as they are stored, to be changed. */
export function LimitsForm({ details }: { readonly details: OperatedTenantDetails }): ReactNode {
  const explain = useExplain();
  const words = useWords().operate;
  const { typed, set, clear } = useTyped<FieldName>();
  const read = (field: FieldName): string => typed.get(field) ?? readStored(details, field);
  const update = useChange(routes.updateOperatedTenant, [routes.getOperatedTenant, routes.listTenants, routes.listOperatorAudit]);
  const patch = OperatedTenantPatch.safeParse(toPatch(typed));
  const wrong = new Set(patch.error?.issues.map(({ path }) => String(path.at(-1))));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (!patch.success) return;
    update.mutate({ params: { tenant: details.tenantId }, body: patch.data }, { onSuccess: () => clear(typed) });
  };
  return (
    <Section title={words.limits.title} about={words.limits.about}>
      <form className="grid gap-3 rounded-xl border bg-card p-4 sm:grid-cols-2 lg:grid-cols-4" onSubmit={submit}>
        <SelectField<string>
          label={words.tenants.plan}
          value={read('plan')}
          options={TenantPlan.options.map((value) => ({ value, label: value }))}
          onChange={set('plan')}
        />
        <TextField label={words.tenants.name} value={read('name')} maxLength={200} onChange={set('name')} />
        {limitNames.map((limit) => (
          <TextField
            key={limit}
            label={words.limits[limit]}
            inputMode="decimal"
            placeholder={words.limits.none}
            problem={wrong.has(limit) ? words.limits.wrong : undefined}
            value={read(limit)}
            onChange={set(limit)}
          />
        ))}
        <div className="flex flex-wrap items-center gap-3 sm:col-span-2 lg:col-span-4">
          <Button type="submit" tone="primary" disabled={!patch.success || update.isPending}>
            {words.limits.save}
          </Button>
          <p role="status" className="text-sm">
            {update.isSuccess && <span className="text-ok">{words.limits.saved}</span>}
            {update.isError && <span className="text-danger">{explain(update.error)}</span>}
          </p>
        </div>
      </form>
    </Section>
  );
}

function readStored({ plan, name, settings }: OperatedTenantDetails, field: FieldName): string {
  if (field === 'plan') return plan;
  return field === 'name' ? (name ?? '') : String(settings.limits?.[field] ?? '');
}

/** What the schema may refuse: it says which field is wrong. */
function toPatch(typed: ReadonlyMap<FieldName, string>): object {
  const [plan, name] = [typed.get('plan'), typed.get('name')];
  const limits = limitNames.filter((limit) => typed.has(limit)).map((limit) => [limit, readLimit(typed.get(limit) ?? '')] as const);
  return {
    ...(plan !== undefined && { plan }),
    ...(name !== undefined && { name: name === '' ? null : name }),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
  };
}

/** Null removes a limit; what is no number stays one that the schema refuses. */
function readLimit(text: string): number | null {
  const trimmed = text.trim().replace(',', '.');
  return trimmed === '' ? null : Number(trimmed);
}
