import { OperatedTenantPatch, routes, TenantPlan, type OperatedTenantDetails } from '@concierge/contract';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { Button } from '../parts/button.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
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

/** Plan, name and limits as they are stored, to be changed. */
export function LimitsForm({ details }: { readonly details: OperatedTenantDetails }): ReactNode {
  const explain = useExplain();
  const words = useWords().operate;
  const { tenantId, settings } = details;
  const [plan, setPlan] = useState(details.plan);
  const [name, setName] = useState(details.name ?? '');
  const [typed, setTyped] = useState(() => new Map(limitNames.map((limit) => [limit, String(settings.limits?.[limit] ?? '')])));
  const update = useChange(routes.updateOperatedTenant, [routes.getOperatedTenant, routes.listTenants, routes.listOperatorAudit]);
  const changed = { plan, name: name === '' ? null : name, limits: toLimits(typed) };
  const patch = OperatedTenantPatch.safeParse(changed);
  const wrong = new Set(patch.error?.issues.map(({ path }) => String(path.at(-1))));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (patch.success) update.mutate({ params: { tenant: tenantId }, body: patch.data });
  };
  return (
    <Section title={words.limits.title} about={words.limits.about}>
      <form className="grid gap-3 rounded-xl border bg-card p-4 sm:grid-cols-2 lg:grid-cols-4" onSubmit={submit}>
        <SelectField
          label={words.tenants.plan}
          value={plan}
          options={TenantPlan.options.map((value) => ({ value, label: value }))}
          onChange={setPlan}
        />
        <TextField label={words.tenants.name} value={name} maxLength={200} onChange={setName} />
        {limitNames.map((limit) => (
          <TextField
            key={limit}
            label={words.limits[limit]}
            inputMode="decimal"
            placeholder={words.limits.none}
            problem={wrong.has(limit) ? words.limits.wrong : undefined}
            value={typed.get(limit) ?? ''}
            onChange={(value) => setTyped((before) => new Map([...before, [limit, value]]))}
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

/** Null removes a limit; what is no number stays one that the schema refuses. */
function toLimits(typed: ReadonlyMap<LimitName, string>): Readonly<Record<string, number | null>> {
  return Object.fromEntries(limitNames.map((limit) => [limit, readLimit(typed.get(limit) ?? '')]));
}

function readLimit(text: string): number | null {
  const trimmed = text.trim().replace(',', '.');
  return trimmed === '' ? null : Number(trimmed);
}
