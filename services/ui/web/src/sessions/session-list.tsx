import { channelNames, limits, type ChannelName, type SessionListItem } from '@concierge/contract';
import { useInfiniteQuery, useQuery, type InfiniteData, type QueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { GatewayClient, SessionsPage, WaitingList } from '../../../src/chat/gateway-client.ts';
import { Button } from '../parts/button.tsx';
import { channelLabel, Choice } from '../parts/choice.tsx';
import { useNow } from '../parts/times.tsx';
import { useSettled } from '../parts/use-settled.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { WaitingSection } from './handoff.tsx';
import { DeleteSession, LabelDialog } from './session-dialogs.tsx';
import { BegunRow, SessionRow } from './session-row.tsx';
import { askAnew } from '../parts/use-api.tsx';

const PAGE_SIZE = 30;
/** Conversations with people; the others are made by the service itself, often many a day. */
const withPeople = ['user', 'channel'] as const;
const PINNED_SHOWN = 50;

export interface SessionListProps {
  readonly gateway: GatewayClient;
  readonly waiting: WaitingList;
  /** The one that is shown; its id once it is accepted. */
  readonly conversation: Conversation | null;
  readonly contactId: string | null;
  /** The key may do more than read. */
  readonly mayWrite: boolean;
  readonly onChosen: () => void;
  /** A conversation has another name. */
  readonly onChanged: (id: string) => void;
  /** A conversation has been deleted, perhaps long after it was asked for: another page may be shown by now. */
  readonly onDeleted: (id: string) => void;
}

interface ListQuery {
  /** The name of an agent, or `all`: no agent may have that name. */
  readonly filter: string;
  readonly channel: ChannelName | null;
  readonly isAutomaticShown: boolean;
  readonly words: string;
}

/** The pages of the list, of one agent or of all. */
function useSessions(gateway: GatewayClient, { filter, channel, isAutomaticShown, words }: ListQuery) {
  const agent = filter === 'all' ? null : filter;
  const origin = isAutomaticShown ? null : withPeople;
  return useInfiniteQuery({
    queryKey: ['sessions', agent, channel, origin, words],
    initialPageParam: null as string | null,
    queryFn: async ({ pageParam, signal }) =>
      gateway.listSessions({ agent, channel, origin, words, cursor: pageParam, limit: PAGE_SIZE }, signal),
    getNextPageParam: (page) => page.nextCursor,
  });
}

function listItems(data: InfiniteData<SessionsPage> | undefined): readonly SessionListItem[] {
  return (data?.pages ?? []).flatMap((page) => page.items);
}

function usePinned(gateway: GatewayClient): readonly SessionListItem[] {
  const { data } = useInfiniteQuery({
    queryKey: ['sessions', 'pinned'],
    initialPageParam: null,
    queryFn: async ({ signal }) =>
      gateway.listSessions({ agent: null, origin: null, isPinned: true, cursor: null, limit: PINNED_SHOWN }, signal),
    getNextPageParam: () => null,
  });
  return listItems(data);
}

/** Ms before each look at the list after a turn: the index may follow the end of a turn by seconds. */
const LOOK_AFTER_MS = [0, 1000, 2500, 4000];

/** Asks for the list again until it has the conversation, or for as long as the index may take. */
export async function refreshSessions(queries: QueryClient, contactId: string | null): Promise<void> {
  const filters = { queryKey: ['sessions'] };
  for (const afterMs of LOOK_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    await askAnew(queries, filters);
    const lists = queries.getQueriesData<InfiniteData<{ readonly items: readonly SessionListItem[] }>>(filters);
    if (contactId === null || lists.some(([, data]) => data?.pages.some(({ items }) => items.some(({ id }) => id === contactId)))) return;
  }
}

export function SessionList(props: SessionListProps): ReactNode {
  const { gateway, waiting, conversation, contactId, mayWrite, onChosen, onChanged, onDeleted } = props;
  const { chat } = useWords();
  const [query, setQuery] = useState<ListQuery>({ filter: 'all', channel: null, isAutomaticShown: false, words: '' });
  const [doomed, setDoomed] = useState<SessionListItem | null>(null);
  const [labelled, setLabelled] = useState<SessionListItem | null>(null);
  // What a list brings may be later than the last beat: nothing was last written in a second.
  const now = Math.max(useNow(), Date.now());
  const searched = useSettled(query.words.trim());
  const sessions = useSessions(gateway, { ...query, words: searched });
  const pinned = usePinned(gateway);
  const waitingIds = new Set(waiting.items.map(({ sessionId }) => sessionId));
  const items = listItems(sessions.data);
  // Those stand above; a search finds them in their place.
  const others = searched === '' ? items.filter((item) => !item.pinned) : items;
  const toRow = (item: SessionListItem): ReactNode => (
    <SessionRow
      key={item.id}
      item={item}
      now={now}
      waits={waitingIds.has(item.id)}
      current={item.id === contactId}
      onChosen={onChosen}
      onLabel={() => setLabelled(item)}
      onDelete={mayWrite ? () => setDoomed(item) : null}
    />
  );

  return (
    <nav aria-label={chat.conversations} className="flex min-h-0 flex-1 flex-col">
      <WaitingSection waiting={waiting} contactId={contactId} now={now} onChosen={onChosen} />
      <ListFilters gateway={gateway} query={query} onChange={setQuery} />
      <div className="min-h-0 flex-1 overflow-y-auto px-2 pb-3">
        {searched === '' && <PinnedSection items={pinned} toRow={toRow} />}
        {sessions.isPending && <ListSkeleton />}
        {sessions.isError && <ListProblem error={sessions.error} onRetry={() => void sessions.refetch()} />}
        {sessions.isSuccess && (
          <Unlisted
            conversation={conversation}
            items={items}
            pinned={pinned}
            isSearch={searched !== ''}
            isNarrow={query.filter !== 'all' || query.channel !== null}
          />
        )}
        <ul className="space-y-0.5">{others.map(toRow)}</ul>
        {sessions.hasNextPage && (
          <Button tone="quiet" className="mt-2 w-full" disabled={sessions.isFetchingNextPage} onClick={() => void sessions.fetchNextPage()}>
            {sessions.isFetchingNextPage ? chat.list.more : chat.list.older}
          </Button>
        )}
      </div>
      {labelled !== null && (
        <LabelDialog
          gateway={gateway}
          item={labelled}
          mayWrite={mayWrite}
          onClose={() => setLabelled(null)}
          onChanged={() => onChanged(labelled.id)}
        />
      )}
      {doomed !== null && (
        <DeleteSession gateway={gateway} item={doomed} onClose={() => setDoomed(null)} onDeleted={() => onDeleted(doomed.id)} />
      )}
    </nav>
  );
}

interface PinnedSectionProps {
  readonly items: readonly SessionListItem[];
  readonly toRow: (item: SessionListItem) => ReactNode;
}

/** Pinned conversations, above the others. */
function PinnedSection({ items, toRow }: PinnedSectionProps): ReactNode {
  const words = useWords().chat.list;
  if (items.length === 0) return null;
  return (
    <section aria-label={words.pinned} className="mb-2 border-b pb-2">
      <ul className="space-y-0.5">{items.map(toRow)}</ul>
    </section>
  );
}

interface UnlistedProps extends Pick<SessionListProps, 'conversation'> {
  readonly items: readonly SessionListItem[];
  readonly pinned: readonly SessionListItem[];
  readonly isSearch: boolean;
  readonly isNarrow: boolean;
}

/** Above the list: the conversation that is shown, as long as no list has it, or that there is none. */
function Unlisted({ conversation, items, pinned, isSearch, isNarrow }: UnlistedProps): ReactNode {
  return (
    <BegunRow
      conversation={isSearch || isNarrow ? null : conversation}
      listed={new Set([...pinned, ...items].map(({ id }) => id))}
      otherwise={items.length === 0 ? <NoSessions isSearch={isSearch} isNarrow={isNarrow} /> : null}
    />
  );
}

function NoSessions({ isSearch, isNarrow }: { readonly isSearch: boolean; readonly isNarrow: boolean }): ReactNode {
  const words = useWords().chat.list;
  const none = isNarrow ? words.noneOfAgent : words.none;
  return <p className="px-2 py-6 text-center text-sm text-muted-foreground">{isSearch ? words.noneFound : none}</p>;
}

interface ListFiltersProps {
  readonly gateway: GatewayClient;
  readonly query: ListQuery;
  readonly onChange: (query: ListQuery) => void;
}

function ListFilters({ gateway, query, onChange }: ListFiltersProps): ReactNode {
  const words = useWords().chat.list;
  return (
    <div className="px-3 pb-2">
      <input
        type="search"
        aria-label={words.search}
        placeholder={words.search}
        maxLength={limits.sessionsQueryMaxCharacters}
        className="mb-2 h-8 w-full rounded-lg border border-input bg-background px-2.5 text-[0.8125rem]"
        value={query.words}
        onChange={({ target }) => onChange({ ...query, words: target.value })}
      />
      <Choice<string>
        label={words.show}
        value={query.filter}
        options={[
          { value: 'all', label: words.all },
          { value: 'admin', label: words.admin },
          { value: 'cs', label: words.customers },
        ]}
        onChange={(filter) => onChange({ ...query, filter })}
      />
      <MoreFilters gateway={gateway} query={query} onChange={onChange} />
      <label className="mt-1.5 flex items-center gap-1.5 px-1 text-xs text-muted-foreground">
        <input
          type="checkbox"
          className="accent-primary"
          checked={query.isAutomaticShown}
          onChange={(event) => onChange({ ...query, isAutomaticShown: event.target.checked })}
        />
        {words.automatic}
      </label>
    </div>
  );
}

/** One agent of the tenant's own, where there are any, and one channel. */
function MoreFilters({ gateway, query, onChange }: ListFiltersProps): ReactNode {
  const words = useWords().chat.list;
  const agents = useQuery({ queryKey: ['agents'], queryFn: async ({ signal }) => gateway.listAgents(signal) });
  const own = (agents.data ?? []).filter(({ builtIn }) => !builtIn).map(({ name }) => name);
  const box = 'h-8 w-full min-w-0 rounded-lg border border-input bg-background px-1.5 text-xs';
  return (
    <div className="mt-1.5 flex gap-1.5">
      {own.length > 0 && (
        <select
          aria-label={words.ownAgent}
          className={box}
          value={own.includes(query.filter) ? query.filter : 'all'}
          onChange={({ target }) => onChange({ ...query, filter: target.value })}
        >
          <option value="all">{words.ownAgent}</option>
          {own.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      <select
        aria-label={words.channel}
        className={box}
        value={query.channel ?? ''}
        onChange={({ target }) => onChange({ ...query, channel: channelNames.find((name) => name === target.value) ?? null })}
      >
        <option value="">{words.anyChannel}</option>
        {channelNames.map((name) => (
          <option key={name} value={name}>
            {channelLabel(name)}
          </option>
        ))}
      </select>
    </div>
  );
}

function ListSkeleton(): ReactNode {
  const words = useWords().chat.list;
  return (
    <div role="status" aria-label={words.loading} className="space-y-1">
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
  const explain = useExplain();
  const words = useWords().chat.list;
  return (
    <div role="alert" className="m-1 rounded-lg bg-danger-soft p-3 text-sm text-danger">
      <p>{explain(error)}</p>
      <Button className="mt-2" onClick={onRetry}>
        {words.retry}
      </Button>
    </div>
  );
}
