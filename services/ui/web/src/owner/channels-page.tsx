import { messagingChannels, routes, toAppName, type ConnectedChannel } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { channelLabel } from '../parts/choice.tsx';
import { Badge, Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';

/** All channels there are, with the state of those that are connected. */
export function ChannelsPage(): ReactNode {
  const { channels: words } = useWords().owner;
  const query = useRead(routes.listChannels);
  return (
    <Page title={words.title} about={words.about}>
      <Loaded query={query}>
        {(connected) => (
          <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
            {messagingChannels.map((channel) => (
              <li key={channel}>
                <Link
                  href={`/channels/${toAppName(channel)}`}
                  className="block h-full rounded-xl border bg-card px-4 py-3 text-sm hover:bg-muted/50"
                >
                  <ChannelFacts label={channelLabel(channel)} connected={connected.find((one) => one.channel === channel)} />
                </Link>
              </li>
            ))}
          </ul>
        )}
      </Loaded>
    </Page>
  );
}

function ChannelFacts({ label, connected }: { readonly label: string; readonly connected: ConnectedChannel | undefined }): ReactNode {
  const { channels: words, today } = useWords().owner;
  if (connected === undefined) {
    return (
      <>
        <span className="flex items-center justify-between gap-2">
          <span className="font-semibold">{label}</span>
          <Badge>{words.notConnected}</Badge>
        </span>
        <span className="text-primary">{words.setup}</span>
      </>
    );
  }
  const { state, lastError } = connected;
  return (
    <>
      <span className="flex items-center justify-between gap-2">
        <span className="font-semibold">{label}</span>
        <Badge tone={state === 'enabled' ? 'ok' : 'danger'}>{words.states[state]}</Badge>
      </span>
      <LastMessages connected={connected} />
      {lastError !== null && <span className="block text-danger">{today.lastError(lastError.message)}</span>}
    </>
  );
}

export function LastMessages({ connected: { lastInboundAt, lastOutboundAt } }: { readonly connected: ConnectedChannel }): ReactNode {
  const { channels: words } = useWords().owner;
  const lines = [
    [words.lastIn, lastInboundAt],
    [words.lastOut, lastOutboundAt],
  ] as const;
  return lines.map(([label, at]) => (
    <span key={label} className="flex justify-between gap-2 text-muted-foreground">
      <span>{label}</span>
      {at === null ? words.never : <RelativeTime at={at} />}
    </span>
  ));
}
