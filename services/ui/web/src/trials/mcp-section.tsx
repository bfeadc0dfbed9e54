import { routes, type McpServerView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Loaded, ServiceWords } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { ChangeProblem, clearSent, SubmitRow, useCanChange } from '../owner/owner-parts.tsx';

/** Servers whose tools the agents may use: attached, asked for their tools, detached. */
export function McpServersSection(): ReactNode {
  const { tools } = useWords();
  const words = tools.mcp;
  const canChange = useCanChange();
  const query = useRead(routes.listMcpServers);
  return (
    <Section title={words.title} about={words.about}>
      {canChange && <AttachForm />}
      <Loaded query={query}>{(servers) => servers.length > 0 && <Servers servers={servers} />}</Loaded>
    </Section>
  );
}

function AttachForm(): ReactNode {
  const { tools } = useWords();
  const words = tools.mcp;
  const canChange = useCanChange();
  const put = useChange(routes.putMcpServer, [routes.listMcpServers]);
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [authorization, setAuthorization] = useState('');
  const [agents, setAgents] = useState('admin');
  const named = agents.split(/[\s,]+/u).filter((agent) => agent !== '');
  return (
    <form
      className="space-y-3 rounded-xl border bg-card p-4"
      onSubmit={(event) => {
        event.preventDefault();
        const headers = authorization === '' ? {} : { Authorization: authorization };
        const onSuccess = (): void => setAuthorization(clearSent(authorization));
        put.mutate({ params: { name }, body: { url, headers, agents: named } }, { onSuccess });
      }}
    >
      <div className="grid gap-3 sm:grid-cols-2">
        <TextField label={words.name} value={name} onChange={setName} required maxLength={24} autoComplete="off" spellCheck={false} />
        <TextField label={words.url} type="url" value={url} onChange={setUrl} required />
        <TextField label={words.authorization} type="password" value={authorization} onChange={setAuthorization} autoComplete="off" />
        <TextField label={words.agents} value={agents} onChange={setAgents} required spellCheck={false} />
      </div>
      <SubmitRow change={put} canChange={canChange} label={words.attach} done={words.attached} />
    </form>
  );
}

function Servers({ servers }: { readonly servers: readonly McpServerView[] }): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.mcp;
  const canChange = useCanChange();
  const test = useChange(routes.testMcpServer, []);
  const remove = useChange(routes.deleteMcpServer, [routes.listMcpServers]);
  const columns = [
    { label: words.name, cell: ({ name }: McpServerView) => name },
    {
      label: words.url,
      cell: ({ url, problem }: McpServerView) => (
        <>
          {url} {problem !== null && <Badge tone="danger">{problem}</Badge>}
        </>
      ),
    },
    { label: words.agents, cell: ({ agents }: McpServerView) => agents.join(', ') },
    {
      label: owner.remove,
      isActions: true,
      cell: ({ name }: McpServerView) =>
        canChange && (
          <span className="flex flex-wrap gap-2">
            <Button disabled={test.isPending} onClick={() => test.mutate({ params: { name } })}>
              {words.test}
            </Button>
            <ConfirmButton
              label={owner.remove}
              title={words.removeTitle(name)}
              action={owner.remove}
              onConfirm={async () => remove.mutateAsync({ params: { name } })}
            >
              {words.removeText}
            </ConfirmButton>
          </span>
        ),
    },
  ];
  return (
    <>
      <Table caption={words.title} columns={columns} rows={servers} keyOf={({ name }) => name} />
      <ChangeProblem change={test} />
      {test.data !== undefined && (
        <p role="status" className={`text-sm ${test.data.ok ? 'text-ok' : 'text-danger'}`}>
          {test.data.ok ? words.works(test.data.tools.length) : <ServiceWords>{test.data.problem}</ServiceWords>}
        </p>
      )}
    </>
  );
}
