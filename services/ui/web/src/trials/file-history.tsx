import { routes, type Actor, type FileVersionView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { mayLeave } from '../navigation.ts';
import { Button } from '../parts/button.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { ChangeProblem, Done, useCanChange } from '../owner/owner-parts.tsx';
import { TextDiff } from './text-diff.tsx';

interface FileHistoryProps {
  readonly path: string;
  /** As it is stored now. */
  readonly text: string;
  /** Called when it begins; what it answers with, when it is done. */
  readonly onRestore: () => () => Promise<void>;
}

/** What was written to a file, by whom and when: each version beside what is there now, and to be written again. */
export function FileHistory({ path, text, onRestore }: FileHistoryProps): ReactNode {
  const words = useWords().tools.history;
  const [shown, setShown] = useState('');
  const query = useRead(routes.listFileVersions, { params: { path } });
  const restore = useChange(routes.restoreFile, [routes.listFileVersions, routes.listFiles, routes.listAgents, routes.listSkills]);
  const choose = (id: string): void => {
    if (!mayLeave()) return;
    const onRestored = onRestore();
    restore.mutate({ params: { path }, body: { id } }, { onSuccess: () => void onRestored() });
  };
  return (
    <Section title={words.title} about={words.about}>
      <Loaded query={query}>
        {({ versions }) =>
          versions.length === 0 ? (
            <p className="text-sm text-muted-foreground">{words.none}</p>
          ) : (
            <Versions versions={versions} shown={shown} isBusy={restore.isPending} onShow={setShown} onRestore={choose} />
          )
        }
      </Loaded>
      <ChangeProblem change={restore} />
      {restore.isSuccess && <Done>{words.restored}</Done>}
      {shown !== '' && <VersionDiff key={shown} path={path} id={shown} text={text} />}
    </Section>
  );
}

interface VersionsProps {
  readonly versions: readonly FileVersionView[];
  readonly shown: string;
  readonly isBusy: boolean;
  readonly onShow: (id: string) => void;
  readonly onRestore: (id: string) => void;
}

function Versions({ versions, shown, isBusy, onShow, onRestore }: VersionsProps): ReactNode {
  const words = useWords().tools.history;
  const formats = useFormats();
  const canChange = useCanChange();
  return (
    <Table
      caption={words.title}
      rows={versions}
      keyOf={({ id }) => id}
      columns={[
        { label: words.when, cell: ({ at }) => <RelativeTime at={at} /> },
        { label: words.by, cell: ({ by }) => <Author by={by} /> },
        { label: words.size, align: 'end', cell: ({ size, isRemoved }) => (isRemoved ? words.removed : formats.bytes(size)) },
        {
          label: words.show,
          isActions: true,
          cell: ({ id, isRemoved }) =>
            !isRemoved && (
              <span className="flex flex-wrap gap-2">
                <Button aria-pressed={shown === id} onClick={() => onShow(shown === id ? '' : id)}>
                  {words.show}
                </Button>
                {canChange && (
                  <Button disabled={isBusy} onClick={() => onRestore(id)}>
                    {words.restore}
                  </Button>
                )}
              </span>
            ),
        },
      ]}
    />
  );
}

function Author({ by }: { readonly by: Actor | null }): ReactNode {
  const words = useWords().tools.history;
  if (by?.kind === 'key') return `${words.key} ${by.keyId}`;
  return by?.kind === 'agent' ? `${words.agent} ${by.agent}` : words.other;
}

function VersionDiff({ path, id, text }: { readonly path: string; readonly id: string; readonly text: string }): ReactNode {
  const words = useWords().tools.history;
  const formats = useFormats();
  const query = useRead(routes.listFileVersions, { params: { path }, query: { id } });
  const version = query.data?.versions.find((one) => one.id === id);
  if (version?.text === undefined) return null;
  return <TextDiff label={words.diff(formats.exactTime(version.at))} before={version.text} after={text} />;
}
