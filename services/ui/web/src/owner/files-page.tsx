import { routes } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link, useSearchParams } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { navigate } from '../navigation.ts';
import { Button } from '../parts/button.tsx';
import { TextField } from '../parts/fields.tsx';
import { FileIcon, PlusIcon } from '../parts/icons.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { FileEditor } from './file-editor.tsx';
import { useCanChange } from './owner-parts.tsx';

/** The address of a file in the console: in the query, as the server looks for files under paths with an ending. */
export function formatFilePath(path: string): string {
  return `/files?${new URLSearchParams({ path }).toString()}`;
}

/** The tenant's own files, and one of them in an editor. */
export function FilesPage({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { files: words } = useWords().owner;
  const [search] = useSearchParams();
  const path = search.get('path') ?? '';
  const query = useRead(routes.listFiles, { query: { recursive: true } });
  return (
    <Page title={words.title} about={words.about}>
      <div className="grid gap-4 lg:grid-cols-[18rem_1fr]">
        <div className={`space-y-3 ${path === '' ? '' : 'max-lg:order-last'}`}>
          <NewFile />
          <Loaded query={query}>
            {(items) => <Tree paths={items.filter(({ kind }) => kind === 'file').map((item) => item.path)} open={path} />}
          </Loaded>
        </div>
        <div className="min-w-0">
          {path === '' ? <Empty title={words.choose} /> : <FileEditor key={path} gateway={gateway} path={path} />}
        </div>
      </div>
    </Page>
  );
}

function NewFile(): ReactNode {
  const { files: words } = useWords().owner;
  const [path, setPath] = useState('');
  const canChange = useCanChange();
  if (!canChange) return null;
  return (
    <form
      className="flex items-start gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = path.trim().replace(/^\//u, '');
        if (wanted === '') return;
        if (navigate(formatFilePath(wanted))) setPath('');
      }}
    >
      <div className="min-w-0 flex-1">
        <TextField label={words.create} help={words.pathHelp} value={path} onChange={setPath} autoComplete="off" spellCheck={false} />
      </div>
      <Button type="submit" className="mt-5 px-2!" aria-label={words.create}>
        <PlusIcon />
      </Button>
    </form>
  );
}

interface TreeProps {
  readonly paths: readonly string[];
  readonly open: string;
}

/** Files below their folders; the folders of what is open are so, too. */
function Tree({ paths, open }: TreeProps): ReactNode {
  const { files: words } = useWords().owner;
  if (paths.length === 0) return <Empty title={words.none} />;
  const folders = Map.groupBy(paths, (path) => path.slice(0, Math.max(0, path.lastIndexOf('/'))));
  const names = [...folders.keys()].toSorted();
  return (
    <nav aria-label={words.list} className="max-h-[60vh] overflow-y-auto rounded-xl border bg-card p-2 text-sm">
      {names.map((folder) => {
        const list = <FileLinks paths={folders.get(folder) ?? []} open={open} />;
        if (folder === '') return <div key="">{list}</div>;
        return (
          <details key={folder} open={open.startsWith(`${folder}/`) || names.length < 6}>
            <summary className="cursor-pointer rounded px-2 py-1.5 text-xs font-medium text-muted-foreground">{folder}/</summary>
            <div className="pl-2">{list}</div>
          </details>
        );
      })}
    </nav>
  );
}

function FileLinks({ paths, open }: TreeProps): ReactNode {
  return (
    <ul>
      {paths.toSorted().map((path) => (
        <li key={path}>
          <Link
            href={formatFilePath(path)}
            aria-current={path === open ? 'page' : undefined}
            className={`flex min-h-8 items-center gap-2 rounded px-2 ${path === open ? 'bg-primary-soft font-medium text-primary' : 'hover:bg-muted'}`}
          >
            <FileIcon className="size-3.5 shrink-0" />
            <span className="truncate">{path.slice(path.lastIndexOf('/') + 1)}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
