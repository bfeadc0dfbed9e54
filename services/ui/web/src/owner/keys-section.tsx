import { keyScopes, routes, type KeyScope, type KeyView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { ChangeProblem, Copyable, clearSent, useCanChange } from './owner-parts.tsx';

/** The keys of the tenant: made with an end, shown once, replaced, revoked. */
export function KeysSection(): ReactNode {
  const { owner } = useWords();
  const words = owner.settings;
  const query = useRead(routes.listKeys);
  const ownId = useRead(routes.whoAmI).data?.keyId;
  const canChange = useCanChange();
  const [made, setMade] = useState<string | null>(null);
  const columns: readonly Column<KeyView>[] = [
    {
      label: words.label,
      cell: ({ label, id }) => (
        <>
          {label === '' ? id : label} {id === ownId && <Badge tone="primary">{words.ownKey}</Badge>}
        </>
      ),
    },
    { label: words.scopes, cell: ({ scopes }) => scopes.map((scope) => words.scopeNames[scope]).join(', ') },
    { label: words.lastUsed, cell: ({ lastUsedAt }) => (lastUsedAt === null ? words.never : <RelativeTime at={lastUsedAt} />) },
    { label: words.ends, cell: (key) => <KeyEnd of={key} /> },
    {
      label: words.revoke,
      isActions: true,
      cell: (key) =>
        key.revokedAt === null &&
        canChange && (
          <span className="flex flex-wrap gap-1">
            {/* The answer with the new key would be the last one to this page. */}
            {ownId !== undefined && key.id !== ownId && <Rotate entry={key} onMade={setMade} />}
            <Revoke entry={key} />
          </span>
        ),
    },
  ];
  return (
    <Section title={words.keys} about={words.keysAbout}>
      {canChange && <NewKey onMade={setMade} />}
      {made !== null && (
        <div role="status">
          <Copyable label={words.made} text={made} />
        </div>
      )}
      <Loaded query={query}>{(keys) => <Table caption={words.keys} columns={columns} rows={keys} keyOf={({ id }) => id} />}</Loaded>
    </Section>
  );
}

function KeyEnd({ of: { revokedAt, expiresAt } }: { readonly of: KeyView }): ReactNode {
  const words = useWords().owner.settings;
  const formats = useFormats();
  const [openedMs] = useState(() => Date.now());
  if (revokedAt !== null) return <Badge tone="danger">{words.revoked}</Badge>;
  if (expiresAt === null) return words.never;
  if (Date.parse(expiresAt) <= openedMs) return <Badge tone="danger">{words.ended}</Badge>;
  return formats.time(expiresAt);
}

interface MakingProps {
  /** With the new key, which is not shown again. */
  readonly onMade: (key: string) => void;
}

/** The end of a day, by the clock of the one who chose it. */
function toEndOfDay(day: string): string {
  return new Date(`${day}T23:59:59`).toISOString();
}

function NewKey({ onMade }: MakingProps): ReactNode {
  const words = useWords().owner.settings;
  const [label, setLabel] = useState('');
  const [scopes, setScopes] = useState<readonly KeyScope[]>(['cs']);
  const [lastDay, setLastDay] = useState('');
  const [today] = useState(() => new Date().toISOString().slice(0, 'YYYY-MM-DD'.length));
  const create = useChange(routes.createKey, [routes.listKeys]);
  const onSuccess = ({ key }: { readonly key: string }): void => {
    setLabel(clearSent(label));
    onMade(key);
  };
  return (
    <form
      className="space-y-3 rounded-xl border bg-card p-4"
      onSubmit={(event) => {
        event.preventDefault();
        const end = lastDay === '' ? {} : { expiresAt: toEndOfDay(lastDay) };
        create.mutate({ body: { label, scopes: [...scopes], ...end } }, { onSuccess });
      }}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label={words.label} value={label} onChange={setLabel} maxLength={100} />
        <TextField label={words.lastDay} help={words.lastDayHelp} type="date" min={today} value={lastDay} onChange={setLastDay} />
      </div>
      <fieldset className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
        <legend className="mb-1 text-xs font-medium text-muted-foreground">{words.scopes}</legend>
        {keyScopes.map((scope) => (
          <label key={scope} className="flex min-h-9 items-center gap-2">
            <input
              type="checkbox"
              className="size-4"
              checked={scopes.includes(scope)}
              onChange={({ target }) => setScopes(keyScopes.filter((one) => (one === scope ? target.checked : scopes.includes(one))))}
            />
            {scope}: {words.scopeNames[scope]}
          </label>
        ))}
      </fieldset>
      <Button type="submit" tone="primary" disabled={create.isPending || scopes.length === 0}>
        {words.create}
      </Button>
      <ChangeProblem change={create} />
    </form>
  );
}

function Rotate({ entry: { id, label }, onMade }: MakingProps & { readonly entry: KeyView }): ReactNode {
  const words = useWords().owner.settings;
  const rotate = useChange(routes.rotateKey, [routes.listKeys]);
  return (
    <ConfirmButton
      label={words.rotate}
      title={words.rotateTitle(label === '' ? id : label)}
      action={words.rotate}
      tone="primary"
      onConfirm={async () => onMade((await rotate.mutateAsync({ params: { id } })).key)}
    >
      {words.rotateText}
    </ConfirmButton>
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
