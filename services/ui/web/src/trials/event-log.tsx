import { EventStatus, routes, type EventEndpointView, type EventView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { useCanChange } from '../owner/owner-parts.tsx';
import { Choice } from '../parts/choice.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useChange, useReadPages } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';

const PAGE_SIZE = 20;
const tones = { waiting: 'warn', sent: 'ok', dead: 'danger' } as const;

/** What was sent and is to be sent, with every try; dead letters are sent again. */
export function EventLog({ endpoints }: { readonly endpoints: readonly EventEndpointView[] }): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.events;
  const [status, setStatus] = useState<EventStatus | 'all'>('all');
  const query = useReadPages(routes.listEvents, { query: { status: status === 'all' ? undefined : status, limit: PAGE_SIZE } });
  const urls = new Map(endpoints.map(({ id, url }) => [id, url]));
  const columns: readonly Column<EventView>[] = [
    { label: words.type, cell: ({ type }) => <code className="text-xs wrap-anywhere">{type}</code> },
    { label: owner.when, cell: ({ timestamp }) => <RelativeTime at={timestamp} /> },
    { label: words.to, cell: ({ endpointId }) => <span className="wrap-anywhere">{urls.get(endpointId) ?? endpointId}</span> },
    { label: owner.state, cell: (event) => <EventState event={event} /> },
    { label: words.redrive, isActions: true, cell: (event) => event.status === 'dead' && <RedriveEvent event={event} /> },
  ];
  return (
    <Section
      title={words.title}
      about={words.about}
      actions={
        <Choice
          label={words.show}
          value={status}
          options={[{ value: 'all', label: owner.all }, ...EventStatus.options.map((value) => ({ value, label: words.statuses[value] }))]}
          onChange={setStatus}
        />
      }
    >
      <LoadedPages query={query} read={(page) => page} empty={<Empty title={status === 'all' ? words.noneYet : words.none} />}>
        {(events) => <Table caption={words.title} columns={columns} rows={events} keyOf={({ id }) => id} />}
      </LoadedPages>
    </Section>
  );
}

function EventState({ event: { status, reason, nextTryAt, log } }: { readonly event: EventView }): ReactNode {
  const words = useWords().tools.events;
  const formats = useFormats();
  return (
    <>
      <Badge tone={tones[status]}>{words.statuses[status]}</Badge> {reason}
      {nextTryAt !== null && log.length > 0 && (
        <>
          {' '}
          {words.nextTry} <RelativeTime at={nextTryAt} />
        </>
      )}
      {log.length > 0 && (
        <details>
          <summary className="cursor-pointer py-1 text-xs text-muted-foreground">{words.tries(log.length)}</summary>
          <ol className="space-y-0.5 text-xs">
            {log.map(({ at, status: answered, ms, error }) => (
              <li key={at} className="wrap-anywhere">
                {formats.time(at)} · {answered ?? words.noAnswer} · {formats.duration(ms)}
                {error !== null && ` · ${error}`}
              </li>
            ))}
          </ol>
        </details>
      )}
    </>
  );
}

function RedriveEvent({ event: { id, type } }: { readonly event: EventView }): ReactNode {
  const words = useWords().tools.events;
  const canChange = useCanChange();
  const redrive = useChange(routes.redriveEvent, [routes.listEvents]);
  if (!canChange) return null;
  return (
    <ConfirmButton
      label={words.redrive}
      title={words.redriveTitle(type)}
      action={words.redrive}
      tone="primary"
      onConfirm={async () => redrive.mutateAsync({ params: { id } })}
    >
      {words.redriveText}
    </ConfirmButton>
  );
}
