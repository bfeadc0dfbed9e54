import { ConciergeError } from '@concierge/client';
import { routes, type Skill } from '@concierge/contract';
import { useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { navigate } from '../navigation.ts';
import { FileProblems } from '../parts/coded-words.tsx';
import { Button } from '../parts/button.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { useApi } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { checkText, readText } from './file-editor.tsx';
import { formatFilePath } from './files-page.tsx';
import { useCanChange } from './owner-parts.tsx';

const FOLDERS_MAX = 1000;
const toFilePath = (name: string): string => `skills/${name}/SKILL.md`;

interface KnownSkills {
  readonly skills: readonly Skill[];
  /** Names of the folders that no agent can use as skills. */
  readonly unusable: readonly string[];
}

/** The service lists what can be used; a folder that it leaves out has something wrong with it. */
function useSkills() {
  const api = useApi();
  return useQuery({
    queryKey: [routes.listSkills.id, 'and folders'],
    queryFn: async ({ signal }): Promise<KnownSkills> => {
      const [skills, folders] = await Promise.all([
        api.call(routes.listSkills, { signal }),
        api.call(routes.listFiles, { query: { path: 'skills', limit: FOLDERS_MAX }, signal }).catch((error: unknown) => {
          if (ConciergeError.from(error).status === 404) return [];
          throw error;
        }),
      ]);
      const usable = new Set(skills.map(({ name }) => name));
      const names = folders.filter(({ kind }) => kind === 'folder').map(({ path }) => path.slice('skills/'.length));
      return { skills, unusable: names.filter((name) => !name.startsWith('.') && !usable.has(name)) };
    },
  });
}

/** What agents know how to do: each skill with what it is for, or with what is wrong with it. */
export function SkillsPage({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { skills: words } = useWords().tools;
  const query = useSkills();
  return (
    <Page title={words.title} about={words.about}>
      <NewSkill />
      <Loaded query={query}>
        {({ skills, unusable }) =>
          skills.length + unusable.length === 0 ? (
            <Empty title={words.none}>{words.noneHelp}</Empty>
          ) : (
            <ul className="grid gap-3 lg:grid-cols-2">
              {unusable.map((name) => (
                <li key={name}>
                  <SkillCard name={name} isUsable={false}>
                    <Unusable gateway={gateway} path={toFilePath(name)} />
                  </SkillCard>
                </li>
              ))}
              {skills.map(({ name, description, trigger }) => (
                <li key={name}>
                  <SkillCard name={name} isUsable>
                    <p className="text-muted-foreground wrap-anywhere">{description}</p>
                    {trigger !== '' && (
                      <p className="wrap-anywhere">
                        {words.trigger}: {trigger}
                      </p>
                    )}
                  </SkillCard>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}

interface SkillCardProps {
  readonly name: string;
  readonly isUsable: boolean;
  readonly children: ReactNode;
}

function SkillCard({ name, isUsable, children }: SkillCardProps): ReactNode {
  const { skills: words } = useWords().tools;
  return (
    <article aria-label={name} className="h-full space-y-1.5 rounded-xl border bg-card px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="font-semibold wrap-anywhere">{name}</h2>
        {!isUsable && <Badge tone="danger">{words.unusable}</Badge>}
        <Link href={formatFilePath(toFilePath(name))} className="ml-auto text-primary underline">
          {words.file}
        </Link>
      </div>
      {children}
    </article>
  );
}

/** What is wrong with it. A key that only reads may not ask, and learns that something is. */
function Unusable({ gateway, path }: { readonly gateway: GatewayClient; readonly path: string }): ReactNode {
  const { skills: words } = useWords().tools;
  const canChange = useCanChange();
  const query = useQuery({
    queryKey: [routes.checkFile.id, path],
    // It is mended on another page.
    staleTime: 0,
    enabled: canChange,
    queryFn: async ({ signal }) => {
      const { text, etag } = await readText(gateway, path, signal);
      return etag === null ? null : checkText(gateway, { path, text, signal });
    },
  });
  if (!canChange) return <p className="text-danger">{words.isWrong}</p>;
  return (
    <Loaded query={query}>
      {(checked) => (
        <p className="text-danger wrap-anywhere">
          {checked === null ? (
            words.noFile
          ) : checked.problem === null ? (
            words.isWrong
          ) : (
            <FileProblems {...checked} problem={checked.problem} />
          )}
        </p>
      )}
    </Loaded>
  );
}

/** Opens the file of a skill that is not there yet, which begins with a template. */
function NewSkill(): ReactNode {
  const { skills: words } = useWords().tools;
  const canChange = useCanChange();
  const [name, setName] = useState('');
  if (!canChange) return null;
  return (
    <form
      className="flex max-w-xl items-start gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        navigate(formatFilePath(toFilePath(name)));
      }}
    >
      <div className="min-w-0 flex-1">
        <TextField
          label={words.newName}
          help={words.newNameHelp}
          value={name}
          onChange={setName}
          required
          maxLength={64}
          pattern="[a-z0-9]+(?:-[a-z0-9]+)*"
          title={words.newNameHelp}
          autoComplete="off"
          spellCheck={false}
        />
      </div>
      <Button type="submit" tone="primary" className="mt-5">
        {words.create}
      </Button>
    </form>
  );
}
