import { routes, type TenantView } from '@concierge/contract';
import type { ReactNode } from 'react';
import { TextField, useTyped } from '../parts/fields.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { SubmitRow, useCanChange } from './owner-parts.tsx';

const parts = ['sessionsDays', 'historyDays', 'uploadsDays'] as const;
type Part = (typeof parts)[number];

/** How long conversations and files are kept, and what would go now by what is written in the fields. */
export function RetentionSection({ tenant }: { readonly tenant: TenantView }): ReactNode {
  const { owner } = useWords();
  const words = owner.settings.retention;
  const canChange = useCanChange();
  const { typed, set, clear } = useTyped<Part>();
  const read = (part: Part): string => typed.get(part) ?? String(tenant.retention?.[part] ?? '');
  const save = useChange(routes.updateTenant, [routes.getTenant, routes.previewRetention]);
  return (
    <Section title={words.title} about={words.about}>
      <form
        className="space-y-3 rounded-xl border bg-card p-4"
        onSubmit={(event) => {
          event.preventDefault();
          save.mutate({ body: { retention: toPatch(typed) } }, { onSuccess: () => clear(typed) });
        }}
      >
        <div className="grid gap-3 sm:grid-cols-3">
          {parts.map((part) => (
            <TextField
              key={part}
              label={words[part]}
              help={words.days}
              value={read(part)}
              onChange={set(part)}
              type="number"
              min={1}
              max={36_500}
              inputMode="numeric"
            />
          ))}
        </div>
        <Preview days={parts.map((part) => [part, read(part)])} />
        <SubmitRow change={save} canChange={canChange} label={owner.save} done={owner.saved} />
      </form>
    </Section>
  );
}

/** Null keeps for ever. */
function toPatch(typed: ReadonlyMap<Part, string>): Partial<Record<Part, number | null>> {
  return Object.fromEntries([...typed].map(([part, text]) => [part, text === '' ? null : Number(text)]));
}

function Preview({ days }: { readonly days: readonly (readonly [Part, string])[] }): ReactNode {
  const words = useWords().owner.settings.retention;
  const formats = useFormats();
  const rule = Object.fromEntries(days.filter(([, text]) => /^[1-9]\d{0,4}$/u.test(text)));
  const isEmpty = Object.keys(rule).length === 0;
  const query = useRead(routes.previewRetention, { query: rule }, { isEnabled: !isEmpty });
  if (isEmpty) return <p className="text-sm text-muted-foreground">{words.nothing}</p>;
  return (
    <Loaded query={query}>
      {({ sessions, history, uploads, hasMore }) => (
        <p role="status" className="text-sm">
          {words.preview({
            sessions: formats.number(sessions.count),
            history: formats.number(history.count),
            uploads: formats.number(uploads.count),
            size: formats.bytes(history.bytes + uploads.bytes),
            hasMore,
          })}
        </p>
      )}
    </Loaded>
  );
}
