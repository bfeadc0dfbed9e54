import { routes, toolNames, type AgentView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { FileProblems } from '../parts/coded-words.tsx';
import { SelectField, TextField } from '../parts/fields.tsx';
import { Badge, Page, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { formatFilePath } from './files-page.tsx';
import { PromptPreview } from '../trials/prompt-preview.tsx';
import { ChangeProblem, useCanChange } from './owner-parts.tsx';

/** What each agent may do, and a way to ask whether it may do one thing. */
export function AgentsPage({ gateway }: { readonly gateway: GatewayClient }): ReactNode {
  const { agents: words } = useWords().owner;
  const query = useRead(routes.listAgents);
  const canChange = useCanChange();
  return (
    <Page title={words.title} about={words.about}>
      <Loaded query={query}>
        {(agents) => (
          <>
            <ul className="grid gap-3 lg:grid-cols-2">
              {agents.map((agent) => (
                <li key={agent.name}>
                  <AgentCard agent={agent} />
                </li>
              ))}
            </ul>
            <PromptPreview gateway={gateway} agents={agents.filter(({ problem }) => problem === null)} />
            {canChange && <PolicyCheck agents={agents.filter(({ problem }) => problem === null)} />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function AgentCard({ agent }: { readonly agent: AgentView }): ReactNode {
  const { agents: words } = useWords().owner;
  const known: Readonly<Record<string, string>> = words.builtIn;
  const { name, description, public: isPublic, builtIn, tools, model, problem } = agent;
  const path = `agents/${name}.md`;
  return (
    <article className="h-full space-y-1.5 rounded-xl border bg-card px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="font-semibold">{name}</h2>
        {problem === null && (
          <Badge tone={isPublic ? 'warn' : 'primary'}>
            {words.access} {isPublic ? words.forAll : words.forOwner}
          </Badge>
        )}
        {!builtIn && (
          <Link href={formatFilePath(path)} className="ml-auto text-primary underline">
            {words.file}
          </Link>
        )}
      </div>
      {problem === null ? (
        <p className="text-muted-foreground">{builtIn ? (known[name] ?? description) : description}</p>
      ) : (
        <p className="text-danger">
          {agent.problems !== undefined && `${path}: `}
          <FileProblems problem={problem} problems={agent.problems} />
        </p>
      )}
      {problem === null && (
        <>
          <p>
            {words.model}: {model ?? words.standard}
          </p>
          <details>
            <summary className="cursor-pointer py-1">{words.toolsOf(tools.length)}</summary>
            <p className="font-mono text-xs leading-5 text-muted-foreground wrap-anywhere">{tools.join(', ')}</p>
          </details>
        </>
      )}
    </article>
  );
}

function PolicyCheck({ agents }: { readonly agents: readonly AgentView[] }): ReactNode {
  const { owner } = useWords();
  const words = owner.agents;
  const [agent, setAgent] = useState('cs');
  const [tool, setTool] = useState('read');
  const [path, setPath] = useState('');
  // What was asked: the fields may have moved on.
  const [asked, setAsked] = useState({ agent, tool });
  const check = useChange(routes.checkPolicy, []);
  return (
    <Section title={words.policy} about={words.policyAbout}>
      <form
        className="space-y-3 rounded-xl border bg-card p-4"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked({ agent, tool });
          check.mutate({ body: { agent, tool, arguments: path === '' ? {} : { path } } });
        }}
      >
        <div className="grid items-end gap-3 sm:grid-cols-[1fr_1fr_1fr_auto]">
          <SelectField
            label={owner.agent}
            value={agent}
            options={agents.map(({ name }) => ({ value: name, label: name }))}
            onChange={setAgent}
          />
          <TextField
            label={words.tool}
            value={tool}
            onChange={setTool}
            list="tools"
            required
            maxLength={100}
            spellCheck={false}
            autoComplete="off"
          />
          <TextField label={words.path} value={path} onChange={setPath} placeholder="SOUL.md" spellCheck={false} autoComplete="off" />
          <Button type="submit" tone="primary" disabled={check.isPending}>
            {words.check}
          </Button>
        </div>
        <datalist id="tools">
          {toolNames.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {check.data !== undefined && (
          <p
            role="status"
            className={`rounded-lg px-3 py-2 text-sm ${check.data.allowed ? 'bg-muted text-ok' : 'bg-danger-soft text-danger'}`}
          >
            <strong>{check.data.allowed ? words.allowed : words.refused}.</strong>{' '}
            {words.verdict({ ...check.data, agent: asked.agent, tool: asked.tool })}
          </p>
        )}
        <ChangeProblem change={check} />
      </form>
    </Section>
  );
}
