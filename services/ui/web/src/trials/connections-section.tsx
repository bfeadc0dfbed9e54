import { routes, type EventEndpointView, type ModelKeyView } from '@concierge/contract';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Empty, Loaded, ServiceWords } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { askAnew, useApi, useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { ChangeProblem, Copyable, Done, clearSent, SubmitRow, useCanChange } from '../owner/owner-parts.tsx';
import { EventLog } from './event-log.tsx';

const form = 'space-y-3 rounded-xl border bg-card p-4';

/** Own keys for model providers: given, never shown again, removed. */
export function ModelKeysSection(): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.modelKeys;
  const canChange = useCanChange();
  const query = useRead(routes.listModelKeys);
  const [provider, setProvider] = useState('');
  const [apiKey, setApiKey] = useState('');
  const put = useChange(routes.putModelKey, [routes.listModelKeys]);
  const remove = useChange(routes.deleteModelKey, [routes.listModelKeys]);
  const columns = [
    { label: words.provider, cell: (key: ModelKeyView) => key.provider },
    {
      label: words.key,
      cell: ({ hint, problem }: ModelKeyView) => (problem === null ? `… ${hint}` : <Badge tone="danger">{problem}</Badge>),
    },
    {
      label: owner.remove,
      isActions: true,
      cell: ({ provider: name }: ModelKeyView) =>
        canChange && (
          <ConfirmButton
            label={owner.remove}
            title={words.removeTitle(name)}
            action={owner.remove}
            onConfirm={async () => remove.mutateAsync({ params: { provider: name } })}
          >
            {words.removeText}
          </ConfirmButton>
        ),
    },
  ];
  return (
    <Section title={words.title} about={words.about}>
      {canChange && (
        <form
          className={form}
          onSubmit={(event) => {
            event.preventDefault();
            put.mutate({ params: { provider }, body: { apiKey } }, { onSuccess: () => setApiKey(clearSent(apiKey)) });
          }}
        >
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              label={words.provider}
              value={provider}
              onChange={setProvider}
              required
              maxLength={64}
              autoComplete="off"
              spellCheck={false}
            />
            <TextField label={words.key} type="password" value={apiKey} onChange={setApiKey} required minLength={8} autoComplete="off" />
          </div>
          <SubmitRow change={put} canChange={canChange} label={owner.save} done={owner.saved} />
        </form>
      )}
      <Loaded query={query}>
        {(keys) => keys.length > 0 && <Table caption={words.title} columns={columns} rows={keys} keyOf={({ provider: name }) => name} />}
      </Loaded>
    </Section>
  );
}

/** Where the tenant's own systems hear of events: made with a secret that is shown once, tried, removed. */
export function EventEndpointsSection(): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.endpoints;
  const canChange = useCanChange();
  const query = useRead(routes.listEventEndpoints);
  const [url, setUrl] = useState('');
  const create = useChange(routes.createEventEndpoint, [routes.listEventEndpoints]);
  return (
    <Section title={words.title} about={words.about}>
      {canChange && (
        <form
          className={form}
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate({ body: { url } }, { onSuccess: () => setUrl(clearSent(url)) });
          }}
        >
          <TextField label={words.url} type="url" value={url} onChange={setUrl} required />
          <SubmitRow change={create} canChange={canChange} label={words.create} done={words.created} />
          {create.data !== undefined && <Copyable label={words.secret} text={create.data.secret} />}
        </form>
      )}
      <Loaded query={query}>
        {(endpoints) => (
          <>
            {endpoints.length === 0 ? (
              <Empty title={words.none} />
            ) : (
              <Endpoints endpoints={endpoints} caption={words.title} label={owner.state} />
            )}
            <EventLog endpoints={endpoints} />
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** So many answers of the service at most: each has some hundreds of dead letters sent. */
const ROUNDS_MAX = 100;

/** All dead letters of an endpoint, the oldest first; how many they were. */
function useRedriveAll() {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (id: string): Promise<number> => {
      let sum = 0;
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const { redriven, more } = await api.call(routes.redriveEventEndpoint, { params: { id }, body: {} });
        sum += redriven;
        if (!more) break;
      }
      return sum;
    },
    onSettled: async () => askAnew(queries, { queryKey: [routes.listEvents.id] }),
  });
}

interface EndpointsProps {
  readonly endpoints: readonly EventEndpointView[];
  readonly caption: string;
  readonly label: string;
}

function Endpoints({ endpoints, caption, label }: EndpointsProps): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.endpoints;
  const formats = useFormats();
  const canChange = useCanChange();
  const redrive = useRedriveAll();
  const enable = useChange(routes.updateEventEndpoint, [routes.listEventEndpoints]);
  const test = useChange(routes.testEventEndpoint, [routes.listEventEndpoints]);
  const remove = useChange(routes.deleteEventEndpoint, [routes.listEventEndpoints]);
  const columns = [
    { label: words.url, cell: ({ url }: EventEndpointView) => url },
    {
      label,
      cell: ({ state, reason }: EventEndpointView) => (
        <>
          <Badge tone={state === 'enabled' ? 'ok' : 'warn'}>{words.states[state]}</Badge> <ServiceWords>{reason}</ServiceWords>
        </>
      ),
    },
    {
      label: owner.remove,
      isActions: true,
      cell: ({ id, url, state }: EventEndpointView) =>
        canChange && (
          <span className="flex flex-wrap gap-2">
            {state === 'disabled' && (
              <Button disabled={enable.isPending} onClick={() => enable.mutate({ params: { id }, body: { enabled: true } })}>
                {words.enable}
              </Button>
            )}
            {state === 'enabled' && (
              <ConfirmButton
                label={words.redriveAll}
                title={words.redriveAllTitle(url)}
                action={words.redriveAll}
                tone="primary"
                onConfirm={async () => redrive.mutateAsync(id)}
              >
                {words.redriveAllText}
              </ConfirmButton>
            )}
            <Button disabled={test.isPending} onClick={() => test.mutate({ params: { id } })}>
              {words.test}
            </Button>
            <ConfirmButton
              label={owner.remove}
              title={words.removeTitle(url)}
              action={owner.remove}
              onConfirm={async () => remove.mutateAsync({ params: { id } })}
            >
              {words.removeText}
            </ConfirmButton>
          </span>
        ),
    },
  ];
  return (
    <>
      <Table caption={caption} columns={columns} rows={endpoints} keyOf={({ id }) => id} />
      <ChangeProblem change={enable} />
      {redrive.data !== undefined && <Done>{words.redriven(redrive.data, formats.number(redrive.data))}</Done>}
      <ChangeProblem change={test} />
      {test.data !== undefined && (
        <p role="status" className={`text-sm ${test.data.ok ? 'text-ok' : 'text-danger'}`}>
          {test.data.ok ? words.works : <ServiceWords>{test.data.problem}</ServiceWords>}
        </p>
      )}
    </>
  );
}
