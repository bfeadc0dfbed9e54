import { routes, tenantIdPattern, type CreatedTenant, type OperatedTenant } from '@concierge/contract';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/confirm-dialog.tsx';
import { SearchField, SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { LoadedPages, useChange, useReadPages } from '../parts/use-api.tsx';
import { useExplain, useWords } from '../words/words.tsx';
import { NewKey, TenantLink } from './shared.tsx';
import { useFilters } from './use-filters.ts';

/** Tenants by id; one that is known by its whole id is opened at once. */
export function TenantsPage(): ReactNode {
  const words = useWords().operate;
  const { read, change } = useFilters();
  const tenants = useReadPages(routes.listTenants, { query: { limit: 100 } });
  const [isMaking, setMaking] = useState(false);
  const asked = read('q').trim().toLowerCase();
  return (
    <Page
      title={words.nav.tenants}
      about={words.tenants.about}
      actions={
        <Button tone="primary" onClick={() => setMaking(true)}>
          {words.tenants.create}
        </Button>
      }
    >
      <form
        className="flex max-w-md gap-2"
        onSubmit={(event: SubmitEvent) => {
          event.preventDefault();
          if (tenantIdPattern.test(asked)) navigate(`/operate/tenants/${asked}`);
        }}
      >
        <SearchField label={words.tenants.search} value={read('q')} onChange={(typed) => change({ q: typed })} />
        <Button type="submit" disabled={!tenantIdPattern.test(asked)}>
          {words.tenants.open}
        </Button>
      </form>
      <LoadedPages
        query={tenants}
        read={(page) => page.filter(({ tenantId, name }) => tenantId.includes(asked) || (name ?? '').toLowerCase().includes(asked))}
        empty={<Empty title={words.tenants.none}>{words.tenants.noneNext}</Empty>}
      >
        {(found) => <TenantsTable tenants={found} />}
      </LoadedPages>
      {isMaking && <CreateTenant onClose={() => setMaking(false)} />}
    </Page>
  );
}

function TenantsTable({ tenants }: { readonly tenants: readonly OperatedTenant[] }): ReactNode {
  const words = useWords().operate;
  return (
    <Table
      caption={words.nav.tenants}
      rows={tenants}
      keyOf={({ tenantId }) => tenantId}
      columns={[
        { label: words.tenant, cell: ({ tenantId }) => <TenantLink tenant={tenantId} /> },
        { label: words.tenants.name, cell: ({ name }) => name ?? '–' },
        { label: words.tenants.plan, cell: ({ plan }) => plan },
        {
          label: words.state,
          cell: ({ suspended, problem }) => (
            <>
              <Badge tone={suspended ? 'warn' : 'ok'}>{suspended ? words.tenants.suspended : words.tenants.active}</Badge>
              {problem !== null && <p className="text-xs text-danger">{problem}</p>}
            </>
          ),
        },
      ]}
    />
  );
}

/** Makes a tenant, then shows its first keys, once. */
function CreateTenant({ onClose }: { readonly onClose: () => void }): ReactNode {
  const explain = useExplain();
  const words = useWords();
  const { tenants } = words.operate;
  const [id, setId] = useState('');
  const [plan, setPlan] = useState<OperatedTenant['plan']>('standard');
  const [made, setMade] = useState<CreatedTenant | null>(null);
  const creation = useChange(routes.createTenant, [routes.listTenants, routes.listOperatorAudit]);
  const isId = tenantIdPattern.test(id);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (isId) setMade(await creation.mutateAsync({ body: { id, plan } }));
  };
  if (made !== null) {
    const open = (): void => navigate(`/operate/tenants/${made.tenantId}`);
    return (
      <Dialog
        title={tenants.made(made.tenantId)}
        buttons={
          <Button tone="primary" onClick={open}>
            {tenants.open}
          </Button>
        }
        onClose={onClose}
      >
        <p>{words.operate.keys.once}</p>
        <NewKey label="admin" value={made.keys.admin} />
        <NewKey label="cs" value={made.keys.cs} />
      </Dialog>
    );
  }
  const buttons = (
    <>
      <Button onClick={onClose}>{words.parts.cancel}</Button>
      <Button tone="primary" type="submit" form="new-tenant" disabled={!isId || creation.isPending}>
        {tenants.createAction}
      </Button>
    </>
  );
  const error = creation.isError ? explain(creation.error) : null;
  return (
    <Dialog title={tenants.create} buttons={buttons} error={error} onClose={onClose}>
      <form id="new-tenant" className="space-y-3" onSubmit={(event) => void submit(event).catch(() => undefined)}>
        <TextField
          label={tenants.id}
          help={tenants.idHelp}
          problem={id === '' || isId ? undefined : words.operate.noTenantId}
          value={id}
          onChange={setId}
          required
          autoFocus
        />
        <SelectField
          label={tenants.plan}
          value={plan}
          options={[
            { value: 'standard', label: 'standard' },
            { value: 'preview', label: 'preview' },
          ]}
          onChange={setPlan}
        />
      </form>
    </Dialog>
  );
}
