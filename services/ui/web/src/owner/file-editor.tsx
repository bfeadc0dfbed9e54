import { ConciergeError } from '@concierge/client';
import { FileProblem, routes } from '@concierge/contract';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useRef, useState, type ReactNode } from 'react';
import { z } from 'zod';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { buildAddress } from '../../../src/json-client.ts';
import { discardUnsaved, navigate, useLeaveGuard } from '../navigation.ts';
import { Button } from '../parts/button.tsx';
import { FileProblems } from '../parts/coded-words.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Badge } from '../parts/page.tsx';
import { Loaded, Problem, ServiceWords } from '../parts/states.tsx';
import type { Words } from '../words/en.ts';
import { useWords } from '../words/words.tsx';
import { FileHistory } from '../trials/file-history.tsx';
import { useSettled } from '../parts/use-settled.ts';
import { Done, useCanChange } from './owner-parts.tsx';
import { askAnew } from '../parts/use-api.tsx';

interface StoredFile {
  readonly text: string;
  /** Null: there is no such file yet. */
  readonly etag: string | null;
  /** Not of bytes that are no UTF-8: what is shown of them, stored again, would be other bytes. */
  readonly isText: boolean;
}

/** What storing a file answers; nothing where all is well. */
const Written = z.object({
  problem: z.string().nullable(),
  problems: z.array(FileProblem).optional(),
  warnings: z.array(z.string()).optional(),
});
const nothingWrong: z.infer<typeof Written> = { problem: null };
/** Of an agent or a skill: Markdown with a front matter that has rules. */
function readDefinedName(path: string): string | undefined {
  return (/^agents\/(?<name>[^/]+)\.md$/u.exec(path) ?? /^skills\/(?<name>[^/]+)\/SKILL\.md$/u.exec(path))?.groups?.['name'];
}

const address = (path: string): string => buildAddress(routes.getFile, { params: { path } });

/** @throws ConciergeError other than that there is no such file */
export async function readText(gateway: GatewayClient, path: string, signal: AbortSignal): Promise<StoredFile> {
  try {
    const response = await gateway.request(address(path), { signal });
    const isText = response.headers.get('content-type') !== 'application/octet-stream';
    return { text: await response.text(), etag: response.headers.get('etag'), isText };
  } catch (error) {
    if (ConciergeError.from(error).status === 404) return { text: '', etag: null, isText: true };
    throw error;
  }
}

interface Checked {
  readonly path: string;
  readonly text: string;
  readonly signal: AbortSignal;
}

/**
 * What storing a text would complain about.
 * @throws ConciergeError
 */
export async function checkText(gateway: GatewayClient, { path, text, signal }: Checked): Promise<z.infer<typeof Written>> {
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  const asked = buildAddress(routes.checkFile, { params: { path } });
  return Written.parse(await (await gateway.request(asked, { method: 'POST', headers, body: text, signal })).json());
}

export interface FileEditorProps {
  readonly gateway: GatewayClient;
  readonly path: string;
}

/** One file as text: changed, stored under the version that was read, or deleted. */
export function FileEditor({ gateway, path }: FileEditorProps): ReactNode {
  const query = useQuery({
    queryKey: [routes.getFile.id, path],
    // What is being written is not replaced by what another tab has stored: storing notices that.
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    // A file that is opened again begins with what is stored by then.
    gcTime: 0,
    queryFn: async ({ signal }) => readText(gateway, path, signal),
  });
  // Another round begins with the text that is stored then.
  const [round, setRound] = useState(0);
  const changes = useRef(0);
  /** What it answers with ends it. What is written in between stays; storing that notices what was found. */
  const beginReload = (): (() => Promise<void>) => {
    const changesBefore = changes.current;
    return async () => {
      // Where it cannot be had, what is written stays, too.
      const { isSuccess } = await query.refetch();
      if (isSuccess && changes.current === changesBefore) setRound((before) => before + 1);
    };
  };
  return (
    <Loaded query={query}>
      {(stored) => (
        <div className="space-y-4">
          <TextEditor
            key={round}
            gateway={gateway}
            path={path}
            stored={stored}
            onWrite={() => {
              changes.current += 1;
            }}
            onReload={() => void beginReload()()}
          />
          <FileHistory path={path} text={stored.text} onRestore={beginReload} />
        </div>
      )}
    </Loaded>
  );
}

interface TextEditorProps extends FileEditorProps {
  readonly stored: StoredFile;
  readonly onWrite: () => void;
  readonly onReload: () => void;
}

function TextEditor({ gateway, path, stored: found, onWrite, onReload }: TextEditorProps): ReactNode {
  const words = useWords().owner;
  const mayChange = useCanChange();
  // What is found later is not what the text was begun with: storing over it must be noticed.
  const [stored, setStored] = useState(found);
  const canChange = mayChange && stored.isText;
  const id = useId();
  const [begun] = useState(() => (stored.etag === null ? beginText(path, words.files) : stored.text));
  const [text, setText] = useState(begun);
  const isNew = stored.etag === null;
  const isChanged = text !== (isNew ? begun : stored.text);
  const isDirty = isChanged || isNew;
  useLeaveGuard(isChanged, words.files.leave);
  const save = useSave(gateway, { path, etag: stored.etag, onStored: setStored });
  const store = (): void => {
    // What is on its way is not sent once more; what was written since goes after it.
    if (!save.isPending || save.variables.text !== text) save.mutate({ text });
  };
  return (
    <form
      className="space-y-2"
      onSubmit={(event) => {
        event.preventDefault();
        store();
      }}
      onKeyDown={(event) => {
        if (event.key !== 's' || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (isDirty && canChange) store();
      }}
    >
      <div className="flex flex-wrap items-center gap-2">
        <label htmlFor={id} className="min-w-0 font-mono text-sm wrap-anywhere">
          {path}
        </label>
        {isChanged && <Badge tone="warn">{words.files.dirty}</Badge>}
        {mayChange && (
          <span className="ml-auto flex gap-2">
            {stored.etag !== null && <DeleteFile gateway={gateway} path={path} etag={stored.etag} />}
            <Button type="submit" tone="primary" disabled={!isDirty || save.isPending}>
              {save.isPending ? words.saving : words.save}
            </Button>
          </span>
        )}
      </div>
      <Remark stored={stored} />
      <Outcome save={save} isShown={!isDirty} onReload={onReload} onOverwrite={() => save.mutate({ text, isForced: true })} />
      <textarea
        id={id}
        className="h-[60vh] w-full resize-y rounded-xl border border-input bg-background p-3 font-mono text-[0.8125rem] leading-5"
        spellCheck={false}
        autoFocus={isNew}
        readOnly={!canChange}
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          onWrite();
        }}
      />
      {isDirty && canChange && <Forecast gateway={gateway} path={path} text={text} />}
    </form>
  );
}

/** What is special about a file: there is none yet, or it is no text. */
function Remark({ stored: { etag, isText } }: { readonly stored: StoredFile }): ReactNode {
  const { files: words } = useWords().owner;
  if (etag === null) return <p className="text-sm text-muted-foreground">{words.isNew}</p>;
  return isText ? null : <p className="text-sm text-warn">{words.notText}</p>;
}

/** What a new agent or skill begins with; other files are empty. */
function beginText(path: string, words: Words['owner']['files']): string {
  const name = readDefinedName(path);
  if (name === undefined) return '';
  return path.startsWith('agents/') ? words.newAgent : words.newSkill(name);
}

/** What storing the text would complain about, said while it is written. */
function Forecast({ gateway, path, text }: FileEditorProps & { readonly text: string }): ReactNode {
  const { files: words } = useWords().owner;
  const settled = useSettled(text);
  const { data } = useQuery({
    queryKey: [routes.checkFile.id, path, settled],
    enabled: readDefinedName(path) !== undefined,
    // What was said of the text before stays until the next answer.
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => checkText(gateway, { path, text: settled, signal }),
  });
  if (data === undefined) return null;
  const { problem, problems, warnings = [] } = data;
  return (
    <p role="status" className={`text-sm wrap-anywhere ${problem === null ? 'text-muted-foreground' : 'text-danger'}`}>
      {problem !== null && (
        <>
          {words.wouldFail} <FileProblems problem={problem} problems={problems} />
        </>
      )}
      {problem === null && warnings.length === 0 && words.wouldWork}
      {warnings.length > 0 && <ServiceWords>{warnings.join(' ')}</ServiceWords>}
    </p>
  );
}

interface Saving {
  readonly path: string;
  /** Of the version that the text was begun with. */
  readonly etag: string | null;
  readonly onStored: (stored: StoredFile) => void;
}

interface Save {
  readonly text: string;
  /** Over whatever is stored there. */
  readonly isForced?: boolean;
}

/**
 * Stores texts, one after the other, each over the version before it and no other. What was written meanwhile stays in
 * the field, as not saved.
 */
function useSave(gateway: GatewayClient, { path, etag: begun, onStored }: Saving) {
  const queries = useQueryClient();
  // Known as soon as it is stored, to the text that waits behind it.
  const base = useRef(begun);
  return useMutation({
    mutationKey: [routes.putFile.id, path],
    scope: { id: address(path) },
    mutationFn: async ({ text, isForced = false }: Save) => {
      const over = isForced ? '*' : base.current;
      const condition = over === null ? { 'if-none-match': '*' } : { 'if-match': over };
      const headers = { 'content-type': 'text/plain; charset=utf-8', ...condition };
      const response = await gateway.request(address(path), { method: 'PUT', headers, body: text });
      const written = response.status === 204 ? nothingWrong : Written.parse(await response.json());
      const etag = response.headers.get('etag');
      base.current = etag;
      const now: StoredFile = { text, etag, isText: true };
      // Of a file that is still open: nothing is kept for the next time.
      queries.setQueryData<StoredFile>([routes.getFile.id, path], (open) => (open === undefined ? undefined : now));
      onStored(now);
      return written;
    },
    onSuccess: async () =>
      Promise.all(
        [routes.listFiles.id, routes.listFileVersions.id, routes.listAgents.id, routes.listSkills.id].map(async (id) =>
          askAnew(queries, { queryKey: [id] }),
        ),
      ),
  });
}

interface OutcomeProps {
  readonly save: ReturnType<typeof useSave>;
  /** What storing it answered is of the text that is there. */
  readonly isShown: boolean;
  readonly onReload: () => void;
  readonly onOverwrite: () => void;
}

function Outcome({ save, isShown, onReload, onOverwrite }: OutcomeProps): ReactNode {
  const words = useWords().owner;
  if (save.error !== null) return <SaveProblem error={save.error} onReload={onReload} onOverwrite={onOverwrite} />;
  if (save.data === undefined || !isShown) return null;
  const { problem, problems, warnings = [] } = save.data;
  if (problem === null && warnings.length === 0) return <Done>{words.saved}</Done>;
  return (
    <div role="alert" className={`rounded-xl p-3 text-sm ${problem === null ? 'bg-warn-soft text-warn' : 'bg-danger-soft text-danger'}`}>
      {problem !== null && (
        <p>
          {words.files.problem} <FileProblems problem={problem} problems={problems} />
        </p>
      )}
      {warnings.length > 0 && <p>{words.files.warnings}</p>}
      {warnings.map((warning) => (
        <p key={warning}>
          <ServiceWords>{warning}</ServiceWords>
        </p>
      ))}
    </div>
  );
}

interface SaveProblemProps {
  readonly error: Error;
  readonly onReload: () => void;
  readonly onOverwrite: () => void;
}

/** Why it was not stored; where another one stored it first, what to do about that. */
function SaveProblem({ error, onReload, onOverwrite }: SaveProblemProps): ReactNode {
  const words = useWords().owner.files;
  if (ConciergeError.from(error).status !== 412) return <Problem error={error} />;
  return (
    <div role="alert" className="space-y-2 rounded-xl bg-warn-soft p-3 text-sm text-warn">
      <p>{words.conflict}</p>
      <div className="flex flex-wrap gap-2 text-foreground">
        <Button onClick={onReload}>{words.reload}</Button>
        <Button onClick={onOverwrite}>{words.overwrite}</Button>
      </div>
    </div>
  );
}

function DeleteFile({ gateway, path, etag }: FileEditorProps & { readonly etag: string }): ReactNode {
  const words = useWords().owner;
  const queries = useQueryClient();
  const remove = async (): Promise<void> => {
    await gateway.request(address(path), { method: 'DELETE', headers: { 'if-match': etag } });
    const lists = [routes.listFiles.id, routes.listAgents.id, routes.listSkills.id];
    await Promise.all(lists.map(async (id) => askAnew(queries, { queryKey: [id] })));
    discardUnsaved();
    navigate('/files');
  };
  return (
    <ConfirmButton label={words.remove} title={words.files.deleteTitle(path)} action={words.remove} onConfirm={remove}>
      {words.files.deleteText}
    </ConfirmButton>
  );
}
