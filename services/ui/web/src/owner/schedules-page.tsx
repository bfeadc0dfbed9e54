import { routes, type ScheduleRunView, type ScheduleView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { Button } from '../parts/button.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Badge, Page, Section } from '../parts/page.tsx';
import { Empty, Loaded, ServiceWords } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { EditSchedule, ScheduleForm } from '../trials/schedule-form.tsx';
import { useCronWords } from '../trials/use-cron-words.ts';
import { ChangeProblem, Done, NextRuns, useCanChange } from './owner-parts.tsx';

const HISTORY_SHOWN = 20;

/** Schedules in words, with the times to come; one of them is open, with its history. */
export function SchedulesPage({ id }: { readonly id: string | undefined }): ReactNode {
  const { schedules: words } = useWords().owner;
  const query = useRead(routes.listSchedules);
  return (
    <Page title={words.title} about={words.about}>
      <ScheduleForm />
      <Loaded query={query}>
        {(schedules) =>
          schedules.length === 0 ? (
            <Empty title={words.none}>{words.noneHelp}</Empty>
          ) : (
            <ul className="space-y-3">
              {schedules.map((schedule) => (
                <li key={schedule.id}>
                  <ScheduleCard schedule={schedule} isOpen={schedule.id === id} />
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Page>
  );
}

interface ScheduleCardProps {
  readonly schedule: ScheduleView;
  readonly isOpen: boolean;
}

function ScheduleCard({ schedule, isOpen }: ScheduleCardProps): ReactNode {
  const { owner } = useWords();
  const words = owner.schedules;
  const { id, name, agent, message, enabled, nextRuns } = schedule;
  return (
    <article className="space-y-2 rounded-xl border bg-card px-4 py-3" aria-label={name}>
      <div className="flex flex-wrap items-center gap-2">
        <h2 className="min-w-0 text-sm font-semibold wrap-anywhere">
          <Link href={isOpen ? '/schedules' : `/schedules/${id}`} className="hover:underline" aria-expanded={isOpen}>
            {name}
          </Link>
        </h2>
        <Badge tone={enabled ? 'ok' : 'plain'}>{enabled ? words.active : words.paused}</Badge>
        <span className="text-sm text-muted-foreground">{agent}</span>
        <ScheduleActions schedule={schedule} />
      </div>
      <p className="text-sm">
        <TimingWords schedule={schedule} />
      </p>
      <p className="line-clamp-2 text-sm text-muted-foreground">{message}</p>
      {enabled && <NextRuns runs={nextRuns} />}
      {isOpen && <History id={id} />}
    </article>
  );
}

function ScheduleActions({ schedule }: { readonly schedule: ScheduleView }): ReactNode {
  const { owner, tools } = useWords();
  const words = owner.schedules;
  const { id, name, enabled } = schedule;
  const canChange = useCanChange();
  const [editing, setEditing] = useState<'no' | 'yes' | 'saved'>('no');
  const pause = useChange(routes.updateSchedule, [routes.listSchedules]);
  const run = useChange(routes.runSchedule, [routes.listScheduleRuns]);
  const removal = useChange(routes.deleteSchedule, [routes.listSchedules]);
  if (!canChange) return null;
  return (
    <>
      <span className="ml-auto flex flex-wrap gap-2">
        <Button onClick={() => setEditing('yes')}>{tools.schedule.edit}</Button>
        <Button disabled={run.isPending} onClick={() => run.mutate({ params: { id } })}>
          {words.run}
        </Button>
        <Button disabled={pause.isPending} onClick={() => pause.mutate({ params: { id }, body: { enabled: !enabled } })}>
          {enabled ? words.pause : words.resume}
        </Button>
        <ConfirmButton
          label={tools.schedule.remove}
          title={tools.schedule.removeTitle(name)}
          action={tools.schedule.remove}
          onConfirm={async () => removal.mutateAsync({ params: { id } })}
        >
          {tools.schedule.removeText}
        </ConfirmButton>
      </span>
      {editing === 'yes' && <EditSchedule schedule={schedule} onSaved={() => setEditing('saved')} onClose={() => setEditing('no')} />}
      {editing === 'saved' && <Done>{tools.schedule.saved}</Done>}
      {run.isSuccess && <Done>{words.started}</Done>}
      <ChangeProblem change={run} />
      <ChangeProblem change={pause} />
    </>
  );
}

/** A cron expression in the console's language; as it is written until the words are there. */
function TimingWords({ schedule: { schedule } }: { readonly schedule: ScheduleView }): ReactNode {
  const words = useWords().owner.schedules;
  const formats = useFormats();
  const cron = 'cron' in schedule ? schedule.cron : '';
  const said = useCronWords(cron, formats.locale.slice(0, 2));
  if ('every' in schedule) return words.every(schedule.every);
  if ('at' in schedule) return words.once(formats.time(schedule.at));
  return <span title={schedule.cron}>{words.in(said, schedule.timezone)}</span>;
}

function History({ id }: { readonly id: string }): ReactNode {
  const words = useWords().owner.schedules;
  const query = useRead(routes.listScheduleRuns, { params: { id }, query: { limit: HISTORY_SHOWN } });
  return (
    <Section title={words.history}>
      <Loaded query={query}>{(runs) => (runs.length === 0 ? <Empty title={words.noHistory} /> : <RunsTable runs={runs} />)}</Loaded>
    </Section>
  );
}

function RunsTable({ runs }: { readonly runs: readonly ScheduleRunView[] }): ReactNode {
  const { owner } = useWords();
  const words = owner.schedules;
  const formats = useFormats();
  const columns: readonly Column<ScheduleRunView>[] = [
    { label: words.planned, cell: ({ scheduledAt }) => formats.time(scheduledAt) },
    {
      label: words.outcome,
      cell: ({ outcome, reason }) => (
        <>
          <Badge tone={outcome === 'ran' ? 'ok' : 'warn'}>{words.outcomes[outcome]}</Badge> <ServiceWords>{reason}</ServiceWords>
        </>
      ),
    },
    {
      label: words.turn,
      cell: ({ turn }) =>
        turn === null ? (
          '–'
        ) : (
          <Link href={`/turns/${turn.id}`} className="text-primary underline">
            {turn.error ?? (turn.status === 'lost' ? words.lost : owner.status[turn.status])}
          </Link>
        ),
    },
    {
      label: words.delivery,
      cell: ({ delivery }) =>
        delivery === null ? words.nothing : [words.deliveries[delivery.status], delivery.reason].filter((text) => text !== null).join(': '),
    },
  ];
  return <Table caption={words.history} columns={columns} rows={runs} keyOf={({ id }) => id} />;
}
