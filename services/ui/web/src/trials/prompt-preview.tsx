import { routes, type AgentView, type PromptPreview as Preview } from '@concierge/contract';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { SelectField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { useApi, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { readText } from '../owner/file-editor.tsx';
import { formatFilePath } from '../owner/files-page.tsx';
import { TextDiff } from './text-diff.tsx';

interface PromptPreviewProps {
  readonly gateway: GatewayClient;
  readonly agents: readonly AgentView[];
}

type Part = Preview['parts'][number];

/** What the model will see at the next turn, by file, and what has changed since the last one. */
export function PromptPreview({ gateway, agents }: PromptPreviewProps): ReactNode {
  const { prompt: words } = useWords().tools;
  const [agent, setAgent] = useState('admin');
  const [session, setSession] = useState('');
  const sessions = useRead(routes.listSessions, { query: { agent, limit: 20 } });
  const query = useRead(routes.previewPrompt, { query: { agent, ...(session !== '' && { session }) } });
  const conversations = (sessions.data ?? []).map(({ id, title, contactName }) => ({
    value: id,
    label: contactName === null ? title : `${contactName}: ${title}`,
  }));
  return (
    <Section title={words.title} about={words.about}>
      <div className="mb-3 grid gap-3 sm:grid-cols-2">
        <SelectField
          label={words.agent}
          value={agent}
          options={agents.map(({ name }) => ({ value: name, label: name }))}
          onChange={(name) => {
            setAgent(name);
            setSession('');
          }}
        />
        <SelectField
          label={words.session}
          value={session}
          options={[{ value: '', label: words.newOne }, ...conversations]}
          onChange={setSession}
        />
      </div>
      <Loaded query={query}>{(preview) => <PromptParts gateway={gateway} preview={preview} />}</Loaded>
    </Section>
  );
}

interface PromptPartsProps {
  readonly gateway: GatewayClient;
  readonly preview: Preview;
}

function PromptParts({ gateway, preview }: PromptPartsProps): ReactNode {
  const { prompt: words, history } = useWords().tools;
  const formats = useFormats();
  const { parts, tokens, unusable, comparedWith } = preview;
  const [shown, setShown] = useState('');
  const shownPart = parts.find(({ name, change }) => name === shown && hasChanged(change));
  return (
    <div className="space-y-2">
      <Table
        caption={words.title}
        rows={parts}
        keyOf={({ name }) => name}
        columns={[
          { label: words.part, cell: ({ name, path }) => <PartName name={name} path={path} /> },
          { label: words.tokens, align: 'end', cell: (part) => formats.number(part.tokens) },
          ...(comparedWith === null
            ? []
            : [
                {
                  label: words.change,
                  cell: ({ name, change }: Part) =>
                    hasChanged(change) && (
                      <span className="flex flex-wrap items-center gap-2">
                        <Badge tone="warn">{words.changes[change]}</Badge>
                        <Button aria-pressed={shown === name} onClick={() => setShown(shown === name ? '' : name)}>
                          {history.show}
                        </Button>
                      </span>
                    ),
                },
              ]),
        ]}
      />
      {shownPart !== undefined && <PartDiff key={shown} gateway={gateway} part={shownPart} />}
      <p className="text-sm text-muted-foreground">
        {words.sum(formats.number(tokens))}{' '}
        {comparedWith !== null && (
          <Link href={`/turns/${comparedWith.turnId}`} className="text-primary underline">
            {words.lastTurn}
          </Link>
        )}
      </p>
      {unusable.map(({ name, reason }) => (
        <p key={name} className="text-sm text-danger">
          {name}: {reason}
        </p>
      ))}
    </div>
  );
}

function hasChanged(change: Part['change']): change is 'new' | 'changed' | 'gone' {
  return change !== null && change !== 'same';
}

/** What was changed in the file of a part since the last turn; where its text of then cannot be had, that it cannot. */
function PartDiff({ gateway, part }: { readonly gateway: GatewayClient; readonly part: Part }): ReactNode {
  const { prompt: words } = useWords().tools;
  const { name, path, version, change } = part;
  const api = useApi();
  const isNew = change === 'new' && path !== null;
  const query = useQuery({
    queryKey: [routes.listFileVersions.id, name, version, 'prompt'],
    queryFn: async ({ signal }) => {
      if (version === null && !isNew) return { before: undefined, after: '' };
      const { text: after } = await readText(gateway, name, signal);
      if (version === null) return { before: '', after };
      const { versions } = await api.call(routes.listFileVersions, { params: { path: name }, query: { id: version }, signal });
      return { before: versions.find(({ id }) => id === version)?.text, after };
    },
    staleTime: 0,
  });
  return (
    <Loaded query={query}>
      {({ before, after }) =>
        before === undefined ? (
          <p role="status" className="text-sm text-muted-foreground">
            {words.notKept(name)}
          </p>
        ) : (
          <TextDiff label={words.diff(name)} before={before} after={after} />
        )
      }
    </Loaded>
  );
}

function PartName({ name, path }: { readonly name: string; readonly path: string | null }): ReactNode {
  const { parts } = useWords().tools.prompt;
  if (path !== null)
    return (
      <Link href={formatFilePath(path)} className="text-primary underline">
        {name}
      </Link>
    );
  if (name === 'tools' || name === 'history' || name === 'skills') return parts[name];
  return name;
}
