import type { WaitingHandoff } from '@concierge/contract';
import type { ReactNode } from 'react';
import { exactTime, relativeTime } from '../../../src/chat/relative-time.ts';
import { formatRoute } from '../../../src/chat/route.ts';
import type { WaitingList } from '../../../src/chat/gateway-client.ts';
import { channelLabel } from '../parts/agent-badge.tsx';
import { StaffIcon } from '../parts/icons.tsx';

export interface WaitingSectionProps {
  readonly waiting: WaitingList;
  readonly contactId: string | null;
  readonly now: number;
  readonly onChosen: () => void;
}

/** Conversations that wait for staff, above all others; nothing while there are none. */
export function WaitingSection({ waiting: { items, total }, contactId, now, onChosen }: WaitingSectionProps): ReactNode {
  if (total === 0) return null;
  return (
    <section aria-label="Waiting for a person" className="mb-2 max-h-[40vh] overflow-y-auto border-b px-2 pb-2">
      <h2 className="flex items-center gap-1.5 px-2.5 py-1 text-xs font-semibold text-warn">
        <StaffIcon className="size-3.5" />
        <span className="flex-1">Waiting for a person</span>
        <span className="rounded-full bg-warn-soft px-1.5 tabular-nums">{total}</span>
      </h2>
      <ul className="space-y-0.5">
        {items.map((item) => (
          <WaitingRow key={item.sessionId} item={item} now={now} current={item.sessionId === contactId} onChosen={onChosen} />
        ))}
      </ul>
    </section>
  );
}

interface WaitingRowProps {
  readonly item: WaitingHandoff;
  readonly now: number;
  readonly current: boolean;
  readonly onChosen: () => void;
}

function WaitingRow({ item, now, current, onChosen }: WaitingRowProps): ReactNode {
  const { sessionId, title, reason, channel, since, lastMessage } = item;
  return (
    <li className={`rounded-lg ${current ? 'bg-primary-soft' : 'hover:bg-muted'}`}>
      <a
        href={formatRoute({ page: 'conversation', contactId: sessionId })}
        aria-current={current ? 'page' : undefined}
        title={reason}
        className="block rounded-lg px-2.5 py-2"
        onClick={onChosen}
      >
        <span className="block truncate text-sm">{title ?? 'Untitled'}</span>
        <span className="block truncate text-xs text-muted-foreground">{lastMessage?.from === 'contact' ? lastMessage.text : reason}</span>
        <span className="mt-0.5 flex items-center gap-1.5 text-xs text-muted-foreground">
          {channel !== null && <span className="truncate">{channelLabel(channel)}</span>}
          <time dateTime={since} title={exactTime(since)} className="ml-auto tabular-nums">
            {relativeTime(since, now)}
          </time>
        </span>
      </a>
    </li>
  );
}
