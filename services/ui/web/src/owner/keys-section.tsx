import { keyScopes, routes, type KeyView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { ChangeProblem, Copyable, useCanChange } from './owner-parts.tsx';

/** The keys of the tenant: made, shown once, revoked. */
export function KeysSection(): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const query = useRead(routes.listKeys);
  const canChange = useCanChange();
  const columns: readonly Column<KeyView>[] = [
    { label: words.label, cell: ({ label, id }) => (label === '' ? id : label) },
    { label: words.scopes, cell: ({ scopes }) => scopes.map((scope) => words.scopeNames[scope]).join(', ') },
    { label: words.lastUsed, cell: ({ lastUsedAt }) => (lastUsedAt === null ? words.never : <RelativeTime at={lastUsedAt} />) },
    {
      label: words.revoke,
      isActions: true,
      cell: (key) => (key.revokedAt === null ? canChange && <Revoke entry={key} /> : <Badge tone="danger">{words.revoked}</Badge>),
    },
  ];
  return (
    <Section title={words.keys} about={words.keysAbout}>
      {canChange && <NewKey />}
      <Loaded query={query}>{(keys) => <Table caption={words.keys} columns={columns} rows={keys} keyOf={({ id }) => id} />}</Loaded>
    </Section>
  );
}

function NewKey(): ReactNode {
  const words = useWords().owner.settings;
  const [label, setLabel] = useState('');
  const [scope, setScope] = useState<(typeof keyScopes)[number]>('cs');
  const create = useChange(routes.createKey, [routes.listKeys]);
  return (
    <form
      className="space-y-3 rounded-xl border bg-card p-4"
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ body: { label, scopes: [scope] } }, { onSuccess: () => setLabel('') });
      }}
    >
      <div className="grid items-end gap-3 sm:grid-cols-[1fr_1fr_auto]">
        <TextField label={words.label} value={label} onChange={setLabel} maxLength={100} />
        <SelectField
          label={words.scope}
          value={scope}
          options={keyScopes.map((value) => ({ value, label: `${value}: ${words.scopeNames[value]}` }))}
          onChange={setScope}
        />
        <Button type="submit" tone="primary" disabled={create.isPending}>
          {words.create}
        </Button>
      </div>
      {create.data !== undefined && (
        <div role="status">
          <Copyable label={words.made} text={create.data.key} />
        </div>
      )}
      <ChangeProblem change={create} />
    </form>
  );
}

function Revoke({ entry: { id, label } }: { readonly entry: KeyView }): ReactNode {
  const words = useWords().owner.settings;
  const revoke = useChange(routes.revokeKey, [routes.listKeys]);
  return (
    <ConfirmButton
      label={words.revoke}
      title={words.revokeTitle(label === '' ? id : label)}
      action={words.revoke}
      onConfirm={async () => revoke.mutateAsync({ params: { id } })}
    >
      {words.revokeText}
    </ConfirmButton>
  );
}
