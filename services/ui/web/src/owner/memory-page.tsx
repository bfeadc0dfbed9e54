import { routes } from '@concierge/contract';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { buildAddress } from '../../../src/json-client.ts';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { SearchField } from '../parts/fields.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useChange, useRead, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { formatFilePath } from './files-page.tsx';
import { useCanChange } from './owner-parts.tsx';

/** What agents have noted: the owner's notes, those about contacts, and a search through notes and conversations. */
export function MemoryPage({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { owner, parts } = useWords();
  const words = owner.memory;
  const [search, setSearch] = useSearchParams();
  const asked = search.get('q') ?? '';
  const [typed, setTyped] = useState(asked);
  return (
    <Page title={words.title} about={words.about}>
      <form
        role="search"
        className="flex gap-2"
        onSubmit={(event) => {
          event.preventDefault();
          setSearch(typed.trim() === '' ? {} : { q: typed.trim() });
        }}
      >
        <SearchField label={words.search} value={typed} onChange={setTyped} />
        <Button type="submit">{parts.search}</Button>
      </form>
      {asked === '' ? (
        <>
          <Notes />
          <Contacts gateway={gateway} />
        </>
      ) : (
        <Hits asked={asked} />
      )}
    </Page>
  );
}

function Hits({ asked }: { readonly asked: string }): ReactNode {
  const { memory: words } = useWords().owner;
  const query = useRead(routes.searchMemory, { query: { q: asked, limit: 20 } });
  return (
    <Section title={words.hits}>
      <Loaded query={query}>
        {(found) => {
          const hits = 'hits' in found ? found.hits : [];
          if (hits.length === 0) return <Empty title={words.noHits} />;
          return (
            <ul className="space-y-2">
              {hits.map(({ kind, ref, title, heading, at, place, snippet }) => (
                <li key={`${ref} ${String(place)}`}>
                  <Link
                    href={kind === 'note' ? formatFilePath(ref) : `/chat/${ref}`}
                    className="block rounded-xl border bg-card px-4 py-2.5 text-sm hover:bg-muted/50"
                  >
                    <span className="flex justify-between gap-3">
                      <span className="truncate font-medium">{[title, heading].filter((text) => text !== '').join(' › ')}</span>
                      <RelativeTime at={at} />
                    </span>
                    <span className="line-clamp-3 text-muted-foreground">{snippet}</span>
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Section>
  );
}

interface Note {
  readonly ref: string;
  readonly size: number;
  readonly updatedAt: string;
}

function Notes(): ReactNode {
  const { memory: words } = useWords().owner;
  const formats = useFormats();
  const query = useRead(routes.searchMemory);
  const forget = useChange(routes.deleteFile, [routes.searchMemory, routes.listFiles]);
  const columns: readonly Column<Note>[] = [
    {
      label: words.note,
      cell: ({ ref }) => (
        <Link href={formatFilePath(ref)} className="text-primary underline">
          {ref}
        </Link>
      ),
    },
    { label: words.size, align: 'end', cell: ({ size }) => formats.bytes(size) },
    { label: words.changed, cell: ({ updatedAt }) => <RelativeTime at={updatedAt} /> },
    {
      label: words.forget,
      isActions: true,
      cell: ({ ref }) => <Forget what={ref} forget={async () => forget.mutateAsync({ params: { path: ref } })} />,
    },
  ];
  return (
    <Section title={words.notes}>
      <Loaded query={query}>
        {(found) => {
          const notes = 'notes' in found ? found.notes : [];
          if (notes.length === 0) return <Empty title={words.noNotes}>{words.noNotesHelp}</Empty>;
          return <Table caption={words.notes} columns={columns} rows={notes} keyOf={({ ref }) => ref} />;
        }}
      </Loaded>
    </Section>
  );
}

function Contacts({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { memory: words } = useWords().owner;
  const query = useReadPages(routes.listNotedContacts);
  const forget = useChange(routes.forgetContact, [routes.listNotedContacts]);
  return (
    <Section title={words.contacts}>
      <LoadedPages query={query} read={(page) => page} empty={<Empty title={words.noContacts} />}>
        {(items) => (
          <ul className="space-y-2">
            {items.map(({ id, sender, displayName, notes }) => (
              <li key={id} className="rounded-xl border bg-card px-4 py-2.5 text-sm">
                <div className="flex flex-wrap items-center gap-2">
                  <span className="min-w-0 flex-1 font-medium wrap-anywhere">{displayName ?? sender ?? id}</span>
                  <Forget what={displayName ?? sender ?? id} forget={async () => forget.mutateAsync({ params: { id } })} />
                </div>
                {notes.map(({ ref }) => (
                  <ContactNote key={ref} gateway={gateway} id={id} path={ref} />
                ))}
              </li>
            ))}
          </ul>
        )}
      </LoadedPages>
    </Section>
  );
}

/** A note about a contact, read when it is opened, and forgotten alone. */
export function ContactNote({
  gateway,
  id,
  path,
}: {
  readonly gateway: GatewayClient;
  readonly id: string;
  readonly path: string;
}): ReactNode {
  const { memory: words } = useWords().owner;
  const [isOpen, setOpen] = useState(false);
  const forget = useChange(routes.forgetContactNote, [routes.listNotedContacts, routes.getSessionContact]);
  const query = useQuery({
    queryKey: [routes.getContactNote.id, id, path],
    enabled: isOpen,
    queryFn: async ({ signal }) =>
      (await gateway.request(buildAddress(routes.getContactNote, { params: { id, ref: path } }), { signal })).text(),
  });
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary className="cursor-pointer py-1 text-muted-foreground wrap-anywhere">{path}</summary>
      {isOpen && (
        <div className="space-y-1 pl-4">
          <Loaded query={query}>{(text) => <p className="whitespace-pre-wrap wrap-anywhere">{text}</p>}</Loaded>
          <Forget label={words.forgetNote} what={path} forget={async () => forget.mutateAsync({ params: { id, ref: path } })} />
        </div>
      )}
    </details>
  );
}

interface ForgetProps {
  /** Of the button, where several stand together. */
  readonly label?: string;
  readonly what: string;
  readonly forget: () => Promise<unknown>;
}

function Forget({ label, what, forget }: ForgetProps): ReactNode {
  const { memory: words } = useWords().owner;
  const canChange = useCanChange();
  if (!canChange) return null;
  return (
    <ConfirmButton label={label ?? words.forget} title={words.forgetTitle(what)} action={words.forget} onConfirm={forget}>
      {words.forgetText}
    </ConfirmButton>
  );
}
