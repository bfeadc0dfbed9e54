import { routes, type DeliveryState, type DeliveryView, type MessagingChannel } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { LastMessages } from '../owner/channels-page.tsx';
import { useCanChange } from '../owner/owner-parts.tsx';
import { SelectField } from '../parts/fields.tsx';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Badge, Section } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table, type Column } from '../parts/table.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useChange, useRead, useReadPages } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';

const PAGE_SIZE = 50;
/** What is not tried again by itself. */
const endings = ['failed', 'unknown', 'expired', 'withheld'] as const satisfies readonly DeliveryState[];

interface ChannelHealthProps {
  readonly app: string;
  readonly channel: MessagingChannel;
}

/** How a connected channel does: its state, the last message each way, its last error, and what has not arrived. */
export function ChannelHealth({ app, channel }: ChannelHealthProps): ReactNode {
  const { tools, owner } = useWords();
  const query = useRead(routes.getChannel, { params: { channel: app } });
  return (
    <>
      <Section title={tools.health.title}>
        <div className="space-y-1 rounded-xl border bg-card p-4 text-sm">
          <Loaded query={query}>
            {(connected) => (
              <>
                <p className="wrap-anywhere">
                  <Badge tone={connected.state === 'enabled' ? 'ok' : 'danger'}>{owner.channels.states[connected.state]}</Badge>{' '}
                  {connected.reason}
                </p>
                <LastMessages connected={connected} />
                {connected.lastError === null ? (
                  <p className="text-muted-foreground">{tools.health.noError}</p>
                ) : (
                  <p className="text-danger wrap-anywhere">
                    {owner.today.lastError(connected.lastError.message)} (<RelativeTime at={connected.lastError.at} />)
                  </p>
                )}
              </>
            )}
          </Loaded>
        </div>
      </Section>
      <Undelivered channel={channel} />
    </>
  );
}

/** Messages that are not tried again by themselves, to be sent again. */
function Undelivered({ channel }: { readonly channel: MessagingChannel }): ReactNode {
  const { tools, owner } = useWords();
  const words = tools.health;
  const [status, setStatus] = useState<(typeof endings)[number]>('failed');
  const query = useReadPages(routes.listDeliveries, { query: { status, limit: PAGE_SIZE } });
  const columns: readonly Column<DeliveryView>[] = [
    {
      label: words.message,
      cell: ({ text, turnId }) => (
        <Link href={`/turns/${turnId}`} className="line-clamp-2 text-primary underline">
          {text === '' ? turnId : text}
        </Link>
      ),
    },
    { label: words.to, cell: ({ to }) => <span className="wrap-anywhere">{to}</span> },
    { label: owner.when, cell: ({ updatedAt }) => <RelativeTime at={updatedAt} /> },
    { label: words.why, cell: ({ problem }) => <span className="wrap-anywhere">{problem?.message ?? '–'}</span> },
    { label: words.redrive, isActions: true, cell: (delivery) => <Redrive delivery={delivery} /> },
  ];
  return (
    <Section title={words.undelivered} about={words.undeliveredAbout}>
      <div className="max-w-xs">
        <SelectField
          label={owner.state}
          value={status}
          options={endings.map((value) => ({ value, label: owner.schedules.deliveries[value] }))}
          onChange={setStatus}
        />
      </div>
      <LoadedPages
        query={query}
        read={(page) => page.filter((delivery) => delivery.channel === channel)}
        empty={<Empty title={words.none(owner.schedules.deliveries[status])} />}
      >
        {(deliveries) => <Table caption={words.undelivered} columns={columns} rows={deliveries} keyOf={({ id }) => id} />}
      </LoadedPages>
    </Section>
  );
}

function Redrive({ delivery: { id, to, state } }: { readonly delivery: DeliveryView }): ReactNode {
  const words = useWords().tools.health;
  const canChange = useCanChange();
  const redrive = useChange(routes.redriveDelivery, [routes.listDeliveries]);
  if (!canChange) return null;
  return (
    <ConfirmButton
      label={words.redrive}
      title={words.redriveTitle(to)}
      action={words.redrive}
      tone="primary"
      onConfirm={async () => redrive.mutateAsync({ params: { id } })}
    >
      {state === 'unknown' ? words.redriveUnknown : words.redriveText}
    </ConfirmButton>
  );
}
