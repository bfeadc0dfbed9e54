import { keyScopes, routes, type KeyScope, type KeyView } from '@concierge/contract';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { clearSent } from '../owner/owner-parts.tsx';
import { Button } from '../parts/button.tsx';
import { ConfirmButton, Dialog } from '../parts/confirm-dialog.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useExplain, useWords } from '../words/words.tsx';
import { Id, NewKey } from './shared.tsx';

const affected = [routes.listTenantKeys, routes.getOperatedTenant, routes.listOperatorAudit];

/** The keys of a tenant. A new one is shown once. */
export function TenantKeys({ tenant }: { readonly tenant: string }): ReactNode {
  const words = useWords();
  const { keys } = words.operate;
  const list = useRead(routes.listTenantKeys, { params: { tenant } });
  const [made, setMade] = useState<string | null>(null);
  return (
    <Section title={keys.title} actions={<CreateKey tenant={tenant} onMade={setMade} />}>
      <Loaded query={list}>
        {(all) => (all.length === 0 ? <Empty title={keys.none} /> : <KeysTable tenant={tenant} keys={all} onMade={setMade} />)}
      </Loaded>
      {made !== null && (
        <Dialog
          title={keys.made}
          buttons={
            <Button tone="primary" onClick={() => setMade(null)}>
              {words.operate.bulk.close}
            </Button>
          }
          onClose={() => setMade(null)}
        >
          <p>{keys.once}</p>
          <NewKey label={keys.key} value={made} />
        </Dialog>
      )}
    </Section>
  );
}

interface MakingProps {
  readonly tenant: string;
  /** With the new key. */
  readonly onMade: (key: string) => void;
}

function CreateKey({ tenant, onMade }: MakingProps): ReactNode {
  const explain = useExplain();
  const words = useWords();
  const { keys } = words.operate;
  /** Another object each time that it is opened. */
  const [opened, setOpened] = useState<object | null>(null);
  const [label, setLabel] = useState('');
  const [scope, setScope] = useState<KeyScope>('admin');
  const creation = useChange(routes.createTenantKey, affected);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const { key } = await creation.mutateAsync({ params: { tenant }, body: { label, scopes: [scope] } });
    // Closed and opened once more meanwhile, it stays open, with what is written for the next key.
    setOpened((now) => (now === opened ? null : now));
    setLabel(clearSent(label));
    onMade(key);
  };
  if (opened === null) return <Button onClick={() => setOpened({})}>{keys.create}</Button>;
  const buttons = (
    <>
      <Button onClick={() => setOpened(null)}>{words.parts.cancel}</Button>
      <Button tone="primary" type="submit" form="new-key" disabled={creation.isPending}>
        {keys.createAction}
      </Button>
    </>
  );
  const error = creation.isError ? explain(creation.error) : null;
  return (
    <Dialog title={keys.create} buttons={buttons} error={error} onClose={() => setOpened(null)}>
      <form id="new-key" className="space-y-3" onSubmit={(event) => void submit(event).catch(() => undefined)}>
        <TextField label={keys.label} help={keys.labelHelp} value={label} onChange={setLabel} autoFocus />
        <SelectField
          label={keys.scope}
          value={scope}
          options={keyScopes.map((value) => ({ value, label: keys.scopes[value] }))}
          onChange={setScope}
        />
      </form>
    </Dialog>
  );
}

function KeysTable({ tenant, keys: list, onMade }: MakingProps & { readonly keys: readonly KeyView[] }): ReactNode {
  const words = useWords().operate;
  const { keys } = words;
  const revocation = useChange(routes.revokeTenantKey, affected);
  const rotation = useChange(routes.rotateTenantKey, affected);
  return (
    <Table
      caption={keys.title}
      rows={list}
      keyOf={({ id }) => id}
      columns={[
        { label: keys.id, cell: ({ id }) => <Id id={id} /> },
        { label: keys.label, cell: ({ label }) => (label === '' ? '–' : label) },
        { label: keys.scope, cell: ({ scopes }) => scopes.join(', ') },
        { label: keys.created, cell: ({ createdAt }) => <RelativeTime at={createdAt} /> },
        { label: keys.used, cell: ({ lastUsedAt }) => (lastUsedAt === null ? keys.never : <RelativeTime at={lastUsedAt} />) },
        { label: words.state, cell: (key) => <KeyState of={key} /> },
        {
          label: words.actions,
          isActions: true,
          cell: ({ id, revokedAt }) =>
            revokedAt === null && (
              <div className="flex flex-wrap gap-1">
                <ConfirmButton
                  label={keys.rotate}
                  title={keys.rotateTitle}
                  action={keys.rotate}
                  tone="primary"
                  onConfirm={async () => onMade((await rotation.mutateAsync({ params: { tenant, id } })).key)}
                >
                  {keys.rotateText}
                </ConfirmButton>
                <ConfirmButton
                  label={keys.revoke}
                  title={keys.revokeTitle}
                  action={keys.revoke}
                  onConfirm={async () => revocation.mutateAsync({ params: { tenant, id } })}
                >
                  {keys.revokeText}
                </ConfirmButton>
              </div>
            ),
        },
      ]}
    />
  );
}

function KeyState({ of: { revokedAt, expiresAt } }: { readonly of: KeyView }): ReactNode {
  const { keys } = useWords().operate;
  if (revokedAt !== null)
    return (
      <>
        <Badge tone="warn">{keys.revoked}</Badge> <RelativeTime at={revokedAt} />
      </>
    );
  return expiresAt === null ? (
    <Badge tone="ok">{keys.active}</Badge>
  ) : (
    <>
      {keys.expires} <RelativeTime at={expiresAt} />
    </>
  );
}
