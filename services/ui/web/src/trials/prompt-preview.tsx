import { routes, type AgentView, type PromptPreview as Preview } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { SelectField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { formatFilePath } from '../owner/files-page.tsx';

/** What the model will see at the next turn, by file, and what has changed since the last one. */
export function PromptPreview({ agents }: { readonly agents: readonly AgentView[] }): ReactNode {
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
      <Loaded query={query}>{(preview) => <PromptParts preview={preview} />}</Loaded>
    </Section>
  );
}

function PromptParts({ preview }: { readonly preview: Preview }): ReactNode {
  const { prompt: words } = useWords().tools;
  const formats = useFormats();
  const { parts, tokens, unusable, comparedWith } = preview;
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
                  cell: ({ change }: Preview['parts'][number]) =>
                    change === null || change === 'same' ? '' : <Badge tone="warn">{words.changes[change]}</Badge>,
                },
              ]),
        ]}
      />
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
