import { ConciergeError } from '@concierge/client';
import type { SessionListItem, SessionOrigin } from '@concierge/contract';
import { useInfiniteQuery, useMutation, useQueryClient, type InfiniteData, type QueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { explain } from '../../../src/chat/chat-failure.ts';
import type { GatewayClient, WaitingList } from '../../../src/chat/gateway-client.ts';
import { exactTime, relativeTime } from '../../../src/chat/relative-time.ts';
import { Link } from 'wouter';
import { formatRoute } from '../../../src/chat/route.ts';
import { AgentBadge, channelLabel, Choice } from '../parts/choice.tsx';
import { Button, IconButton } from '../parts/button.tsx';
import { ConfirmDialog } from '../parts/confirm-dialog.tsx';
import { StaffIcon, TrashIcon } from '../parts/icons.tsx';
import { useNow } from '../parts/times.tsx';
import { WaitingSection } from './handoff.tsx';

const PAGE_SIZE = 30;
/** Conversations with people; the others are made by the service itself, often many a day. */
const withPeople = ['user', 'channel'] as const;
const originLabels: Partial<Record<SessionOrigin, string>> = {
  schedule: 'Schedule',
  heartbeat: 'Heartbeat',
  subagent: 'Sub-agent',
  notice: 'Notice',
};

export interface SessionListProps {
  readonly gateway: GatewayClient;
  readonly waiting: WaitingList;
  readonly contactId: string | null;
  readonly onChosen: () => void;
  /** The conversation that is shown has been deleted. */
  readonly onDeletedShown: () => void;
}

/** The pages of the list, of one agent or of all. */
function useSessions(gateway: GatewayClient, filter: 'all' | 'admin' | 'cs', isAutomaticShown: boolean) {
  const agent = filter === 'all' ? null : filter;
  const origin = isAutomaticShown ? null : withPeople;
  return useInfiniteQuery({
    queryKey: ['sessions', agent, origin],
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam, signal }) => gateway.listSessions({ agent, origin, cursor: pageParam, limit: PAGE_SIZE }, signal),
    getNextPageParam: (page) => page.nextCursor,
  });
}

/** Ms before each look at the list after a turn: the index may follow the end of a turn by seconds. */
const LOOK_AFTER_MS = [0, 1000, 2500, 4000];

/** Asks for the list again until it has the conversation, or for as long as the index may take. */
export async function refreshSessions(queries: QueryClient, contactId: string | null): Promise<void> {
  const filters = { queryKey: ['sessions'] };
  for (const afterMs of LOOK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    // The first request of a list is not repeated while it is under way, though its answer may be from before the turn.
    await queries.cancelQueries(filters);
    await queries.invalidateQueries(filters);
    const lists = queries.getQueriesData<InfiniteData<{ readonly items: readonly SessionListItem[] }>>(filters);
    if (contactId === null || lists.some(([, data]) => data?.pages.some(({ items }) => items.some(({ id }) => id === contactId)))) return;
  }
}

export function SessionList({ gateway, waiting, contactId, onChosen, onDeletedShown }: SessionListProps): ReactNode {
  const [filter, setFilter] = useState<'all' | 'admin' | 'cs'>('all');
  const [isAutomaticShown, setAutomaticShown] = useState(false);
  const [doomed, setDoomed] = useState<SessionListItem | null>(null);
  const now = useNow();
  const sessions = useSessions(gateway, filter, isAutomaticShown);
  const waitingIds = new Set(waiting.items.map(({ sessionId }) => sessionId));
  const items = (sessions.data?.pages ?? []).flatMap((page) => page.items);

  return (
    <nav aria-label="Conversations" className="flex min-h-0 flex-1 flex-col">
      <WaitingSection waiting={waiting} contactId={contactId} now={now} onChosen={onChosen} />
      <div className="px-3 pb-2">
        <Choice
          label="Show conversations of"
          value={filter}
          options={[
            { value: 'all', label: 'All' },
            { value: 'admin', label: 'Admin' },
            { value: 'cs', label: 'Customers' },
          ]}
          onChange={setFilter}
        />
        <label className="mt-1.5 flex items-center gap-1.5 px-1 text-xs text-muted-foreground">
          <input
            type="checkbox"
            className="accent-primary"
            checked={isAutomaticShown}
            onChange={(event) => setAutomaticShown(event.target.checked)}
          />
          Show schedules, heartbeats and sub-agents
        </label>
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-2 pb-3">
        {sessions.isPending && <ListSkeleton />}
        {sessions.isError && <ListProblem error={sessions.error} onRetry={() => void sessions.refetch()} />}
        {sessions.isSuccess && items.length === 0 && (
          <p className="px-2 py-6 text-center text-sm text-muted-foreground">
            {filter === 'all' ? 'No conversations yet. Write the first message.' : 'None with this agent yet.'}
          </p>
        )}
        <ul className="space-y-0.5">
          {items.map((item) => (
            <SessionRow
              key={item.id}
              item={item}
              now={now}
              waits={waitingIds.has(item.id)}
              current={item.id === contactId}
              onChosen={onChosen}
              onDelete={() => setDoomed(item)}
            />
          ))}
        </ul>
        {sessions.hasNextPage && (
          <Button tone="quiet" className="mt-2 w-full" disabled={sessions.isFetchingNextPage} onClick={() => void sessions.fetchNextPage()}>
            {sessions.isFetchingNextPage ? 'Loading…' : 'Show older'}
          </Button>
        )}
      </div>
      {doomed !== null && (
        <DeleteSession
          gateway={gateway}
          item={doomed}
          onClose={() => setDoomed(null)}
          onDeleted={() => {
            if (doomed.id === contactId) onDeletedShown();
          }}
        />
      )}
    </nav>
  );
}

interface SessionRowProps {
  readonly item: SessionListItem;
  readonly now: number;
  /** The conversation waits for staff. */
  readonly waits: boolean;
  readonly current: boolean;
  readonly onChosen: () => void;
  readonly onDelete: () => void;
}

function SessionRow({ item, now, waits, current, onChosen, onDelete }: SessionRowProps): ReactNode {
  return (
    <li className={`group relative rounded-lg ${current ? 'bg-primary-soft' : 'hover:bg-muted'}`}>
      <Link
        href={formatRoute({ page: 'conversation', contactId: item.id })}
        aria-current={current ? 'page' : undefined}
        className="block rounded-lg px-2.5 py-2"
        onClick={onChosen}
      >
        <span className="block truncate pr-7 text-sm">{item.title === '' ? 'Untitled' : item.title}</span>
        <span className="mt-0.5 flex items-center gap-1.5 text-xs text-muted-foreground">
          <AgentBadge agent={item.agent} />
          {waits && (
            <span role="img" aria-label="Waits for a person" title="Waits for a person" className="text-warn">
              <StaffIcon className="size-3.5" />
            </span>
          )}
          {originLabels[item.origin] !== undefined && <span className="truncate">{originLabels[item.origin]}</span>}
          {item.channel !== 'web' && <span className="truncate">{channelLabel(item.channel)}</span>}
          <span className="tabular-nums">{item.messageCount} msg</span>
          <time dateTime={item.updatedAt} title={exactTime(item.updatedAt)} className="ml-auto tabular-nums">
            {relativeTime(item.updatedAt, now)}
          </time>
        </span>
      </Link>
      <IconButton
        label={`Delete “${item.title}”`}
        className="absolute top-1 right-1 size-7! opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-60"
        onClick={onDelete}
      >
        <TrashIcon className="size-3.5" />
      </IconButton>
    </li>
  );
}

interface DeleteSessionProps {
  readonly gateway: GatewayClient;
  readonly item: SessionListItem;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

function DeleteSession({ gateway, item, onClose, onDeleted }: DeleteSessionProps): ReactNode {
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: async () => gateway.deleteSession(item.id),
    onSuccess: async () => {
      onDeleted();
      onClose();
      await queries.invalidateQueries({ queryKey: ['sessions'] });
    },
  });
  return (
    <ConfirmDialog
      title="Delete this conversation?"
      action={removal.isPending ? 'Deleting…' : 'Delete'}
      busy={removal.isPending}
      error={removal.isError ? explain(ConciergeError.from(removal.error)) : null}
      onConfirm={() => removal.mutate()}
      onCancel={onClose}
    >
      <p>
        “{item.title === '' ? 'Untitled' : item.title}” and its {item.messageCount} messages are removed for good. What the agent wrote into
        its memory stays.
      </p>
    </ConfirmDialog>
  );
}

function ListSkeleton(): ReactNode {
  return (
    <div role="status" aria-label="Loading conversations" className="space-y-1">
      {['w-4/5', 'w-3/5', 'w-2/3'].map((width) => (
        <div key={width} className="animate-pulse space-y-2 px-2.5 py-2.5">
          <div className={`h-3 rounded bg-muted ${width}`} />
          <div className="h-2.5 w-1/3 rounded bg-muted" />
        </div>
      ))}
    </div>
  );
}

function ListProblem({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }): ReactNode {
  return (
    <div role="alert" className="m-1 rounded-lg bg-danger-soft p-3 text-sm text-danger">
      <p>{explain(ConciergeError.from(error))}</p>
      <Button className="mt-2" onClick={onRetry}>
        Try again
      </Button>
    </div>
  );
}
