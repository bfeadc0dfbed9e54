import { routes, tenantIdPattern, type CreatedTenant, type ImportedTenant, type OperatedTenant } from '@concierge/contract';
import { useId, useState, type ReactNode, type SubmitEvent } from 'react';
import { Button } from '../parts/button.tsx';
import { navigate } from '../navigation.ts';
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
  const [opened, setOpened] = useState<'create' | 'import' | null>(null);
  const asked = read('q').trim().toLowerCase();
  return (
    <Page
      title={words.nav.tenants}
      about={words.tenants.about}
      actions={
        <>
          <Button onClick={() => setOpened('import')}>{words.tenants.import}</Button>
          <Button tone="primary" onClick={() => setOpened('create')}>
            {words.tenants.create}
          </Button>
        </>
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
      {opened === 'create' && <CreateTenant onClose={() => setOpened(null)} />}
      {opened === 'import' && <ImportTenant onClose={() => setOpened(null)} />}
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

interface MadeTenantProps {
  readonly made: Pick<ImportedTenant, 'tenantId' | 'keys'>;
  readonly notes: readonly string[];
  readonly onClose: () => void;
}

/** The tenant is there: with its first keys, shown once, where it has got new ones. */
function MadeTenant({ made: { tenantId, keys }, notes, onClose }: MadeTenantProps): ReactNode {
  const { tenants, keys: words } = useWords().operate;
  const open = (
    <Button tone="primary" onClick={() => navigate(`/operate/tenants/${tenantId}`)}>
      {tenants.open}
    </Button>
  );
  return (
    <Dialog title={tenants.made(tenantId)} buttons={open} onClose={onClose}>
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      {keys !== undefined && (
        <>
          <p>{words.once}</p>
          <NewKey label="admin" value={keys.admin} />
          <NewKey label="cs" value={keys.cs} />
        </>
      )}
    </Dialog>
  );
}

/** Makes a tenant from the archive that an export was. */
function ImportTenant({ onClose }: { readonly onClose: () => void }): ReactNode {
  const explain = useExplain();
  const fileId = useId();
  const { operate: words, parts } = useWords();
  const { tenants } = words;
  const [archive, setArchive] = useState<File | null>(null);
  const [id, setId] = useState('');
  const run = useChange(routes.importTenant, [routes.listTenants, routes.listOperatorAudit]);
  const isId = id === '' || tenantIdPattern.test(id);
  if (run.data !== undefined) return <MadeTenant made={run.data} notes={run.data.notes} onClose={onClose} />;
  const buttons = (
    <>
      <Button onClick={onClose}>{parts.cancel}</Button>
      <Button tone="primary" type="submit" form="import-tenant" disabled={archive === null || !isId || run.isPending}>
        {run.isPending ? parts.loading : tenants.import}
      </Button>
    </>
  );
  return (
    <Dialog title={tenants.importTitle} buttons={buttons} error={run.isError ? explain(run.error) : null} onClose={onClose}>
      <form
        id="import-tenant"
        className="space-y-3"
        onSubmit={(event: SubmitEvent) => {
          event.preventDefault();
          if (archive !== null) run.mutate({ query: { as: id }, body: archive });
        }}
      >
        <label htmlFor={fileId} className="block text-xs text-muted-foreground">
          {tenants.archive}
        </label>
        <input id={fileId} type="file" accept=".gz,.tgz" required onChange={({ target }) => setArchive(target.files?.[0] ?? null)} />
        <TextField
          label={tenants.importAs}
          help={tenants.importAsHelp}
          problem={isId ? undefined : words.noTenantId}
          value={id}
          onChange={setId}
        />
      </form>
    </Dialog>
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
  if (made !== null) return <MadeTenant made={made} notes={[]} onClose={onClose} />;
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
