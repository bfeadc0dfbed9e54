import { routes, type WorkerView } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { Duration, RelativeTime } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { Id, LIVE_MS, TurnLink } from './shared.tsx';

/** Workers that live, and what each of them does. */
export function WorkersPage(): ReactNode {
  const words = useWords().operate;
  const workers = useRead(routes.listWorkers, {}, { everyMs: LIVE_MS });
  return (
    <Page title={words.nav.workers} about={words.workers.about}>
      <Loaded query={workers}>
        {(all) => (all.length === 0 ? <Empty title={words.workers.none}>{words.workers.noneNext}</Empty> : <WorkersTable workers={all} />)}
      </Loaded>
    </Page>
  );
}

const tones = { running: 'ok', draining: 'warn', stalled: 'danger' } as const;
/** A worker reports every two seconds. */
const SILENT_MS = 3000;

function WorkersTable({ workers }: { readonly workers: readonly WorkerView[] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  return (
    <Table
      caption={words.nav.workers}
      rows={workers}
      keyOf={({ id }) => id}
      columns={[
        { label: words.workers.worker, cell: ({ id }) => <Id id={id} /> },
        { label: words.state, cell: ({ state }) => <Badge tone={tones[state]}>{words.workers.states[state]}</Badge> },
        { label: words.workers.version, cell: ({ version }) => version },
        { label: words.workers.started, cell: ({ startedAt }) => <RelativeTime at={startedAt} /> },
        { label: words.workers.load, align: 'end', cell: ({ running, slots }) => `${formats.number(running)} / ${formats.number(slots)}` },
        { label: words.workers.turns, cell: ({ turns }) => <RunningTurns turns={turns} /> },
        { label: words.workers.stall, align: 'end', cell: ({ stallMs }) => <Duration ms={stallMs} /> },
        {
          label: words.workers.heard,
          align: 'end',
          cell: ({ silentMs }) => (
            <span className={silentMs > SILENT_MS ? 'text-warn' : ''}>
              <Duration ms={silentMs} />
            </span>
          ),
        },
        { label: words.actions, isActions: true, cell: (worker) => <Drain worker={worker} /> },
      ]}
    />
  );
}

const TURNS_SHOWN = 4;

function RunningTurns({ turns }: { readonly turns: readonly string[] }): ReactNode {
  const words = useWords();
  if (turns.length === 0) return <span className="text-muted-foreground">{words.parts.none}</span>;
  return (
    <span className="flex flex-wrap gap-x-2">
      {turns.slice(0, TURNS_SHOWN).map((id) => (
        <TurnLink key={id} turnId={id} />
      ))}
      {turns.length > TURNS_SHOWN && words.operate.failures.andMore(turns.length - TURNS_SHOWN)}
    </span>
  );
}

/** A worker that stops by itself is not for an operator to steer. */
function Drain({ worker: { id, state, isDrained } }: { readonly worker: WorkerView }): ReactNode {
  const words = useWords().operate.workers;
  const drain = useChange(routes.drainWorker, [routes.listWorkers, routes.getOverview]);
  const undrain = useChange(routes.undrainWorker, [routes.listWorkers, routes.getOverview]);
  if (isDrained) {
    return (
      <Button disabled={undrain.isPending} onClick={() => undrain.mutate({ params: { id } })}>
        {words.undrain}
      </Button>
    );
  }
  if (state === 'draining') return null;
  return (
    <ConfirmButton
      label={words.drain}
      title={words.drainTitle}
      action={words.drainAction}
      onConfirm={async () => void (await drain.mutateAsync({ params: { id } }))}
    >
      {words.drainText}
    </ConfirmButton>
  );
}
