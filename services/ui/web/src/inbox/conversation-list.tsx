import { routes, type LastMessage, type SessionListItem, type SessionState } from '@concierge/contract';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { previewMessage } from '../../../src/chat/preview-message.ts';
import type { FilterChange } from '../operate/use-filters.ts';
import { channelLabel, Choice } from '../parts/choice.tsx';
import { SearchField } from '../parts/fields.tsx';
import { StaffIcon } from '../parts/icons.tsx';
import { Badge } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { LoadedPages, useRead, type LoadedPagesProps } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { switchNotifications, useNotifyState } from './notifications.ts';
import { useUnread } from './seen.ts';
import { useStaffName } from './staff-name.ts';

export type InboxFilter = 'all' | 'mine' | 'waiting' | 'failed';

export interface ConversationListProps {
  readonly query: LoadedPagesProps<readonly SessionListItem[], SessionListItem>['query'];
  readonly filter: InboxFilter;
  /** What is searched for; empty for nothing. */
  readonly asked: string;
  readonly currentId: string | undefined;
  readonly toHref: (id: string) => string;
  readonly onChange: (change: FilterChange) => void;
  readonly onChosen: () => void;
}

const tones: Readonly<Record<SessionState, 'plain' | 'warn' | 'danger' | 'primary'>> = {
  agent: 'plain',
  waiting: 'warn',
  with_staff: 'primary',
  failed: 'danger',
};

/** What a contact is called in the lists; of a visitor without a name a few digits, to know one from another. */
export function useContactName(): (contact: { readonly contactName?: string | null; readonly sender: string | null }) => string {
  const { anonymous, visitor } = useWords().inbox;
  return ({ contactName = null, sender }) => {
    const [, digits] = /^visitor:([0-9a-f]{6})[0-9a-f]{58}$/u.exec(sender ?? '') ?? [];
    return contactName ?? (digits === undefined ? (sender ?? anonymous) : visitor(digits));
  };
}

/** Whether its last message is one that staff has not written. */
function isTold(item: SessionListItem): item is SessionListItem & { readonly lastMessage: LastMessage } {
  return item.lastMessage !== null && item.lastMessage.from !== 'person';
}

/** Conversations with contacts, the last one first. */
export function ConversationList({ query, filter, asked, currentId, toHref, onChange, onChosen }: ConversationListProps): ReactNode {
  const words = useWords().inbox;
  const waiting = useRead(routes.listHandoffs, { query: { limit: 100 } });
  const isUnread = useUnread();
  // Who has not said a name yet.
  const isNobody = useStaffName() === '' && filter === 'mine';
  const since = new Map((waiting.data ?? []).map((handoff) => [handoff.sessionId, handoff.since]));
  return (
    <>
      <div className="space-y-2 border-b p-3">
        <Search asked={asked} onChange={(q) => onChange({ q })} />
        <Choice
          label={words.show}
          value={filter}
          options={[
            { value: 'all', label: words.filters.all },
            { value: 'mine', label: words.filters.mine },
            { value: 'waiting', label: words.filters.waiting },
            { value: 'failed', label: words.filters.failed },
          ]}
          onChange={(value: InboxFilter) => onChange({ show: value === 'all' ? '' : value })}
        />
        <NotifyButton />
      </div>
      <nav aria-label={words.list} className="min-h-0 flex-1 space-y-2 overflow-y-auto p-2">
        {isNobody ? (
          <NoConversation filter={filter} isSearch={false} />
        ) : (
          <LoadedPages query={query} read={(page) => page} empty={<NoConversation filter={filter} isSearch={asked !== ''} />}>
            {(items) => (
              <ul className="space-y-0.5">
                {items.map((item) => (
                  <Row
                    key={item.id}
                    item={item}
                    since={since.get(item.id)}
                    href={toHref(item.id)}
                    isCurrent={item.id === currentId}
                    isUnread={isTold(item) && item.id !== currentId && isUnread(item.id, item.lastMessage.at)}
                    onChosen={onChosen}
                  />
                ))}
              </ul>
            )}
          </LoadedPages>
        )}
      </nav>
    </>
  );
}

/** Switches notifications of this browser; nothing where it has none. */
function NotifyButton(): ReactNode {
  const words = useWords().inbox;
  const state = useNotifyState();
  if (state === 'unavailable') return null;
  if (state === 'blocked') return <p className="text-xs text-muted-foreground">{words.notifyBlocked}</p>;
  return (
    <label className="flex items-center gap-1.5 px-1 text-xs text-muted-foreground">
      <input
        type="checkbox"
        className="accent-primary"
        checked={state === 'on'}
        onChange={({ target }) => void switchNotifications(target.checked)}
      />
      {words.notify}
    </label>
  );
}

/** Asks when it is sent, and for everything as soon as it is empty. */
function Search({ asked, onChange }: { readonly asked: string; readonly onChange: (q: string) => void }): ReactNode {
  const words = useWords().inbox;
  const [typed, setTyped] = useState(asked);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onChange(typed.trim());
      }}
    >
      <SearchField
        label={words.search}
        value={typed}
        onChange={(text) => {
          setTyped(text);
          if (text === '') onChange('');
        }}
      />
    </form>
  );
}

function NoConversation({ filter, isSearch }: { readonly filter: InboxFilter; readonly isSearch: boolean }): ReactNode {
  const words = useWords().inbox;
  if (isSearch || filter === 'failed') return <Empty title={words.noneFits} />;
  if (filter === 'mine') return <Empty title={words.noneMine}>{words.noneMineHelp}</Empty>;
  if (filter === 'waiting') return <Empty title={words.noneWaits} />;
  return (
    <Empty title={words.none}>
      <Link href="/channels" className="text-primary underline">
        {words.noneHelp}
      </Link>
    </Empty>
  );
}

interface RowProps {
  readonly item: SessionListItem;
  /** Since when it is handed over. */
  readonly since: string | undefined;
  readonly href: string;
  readonly isCurrent: boolean;
  readonly isUnread: boolean;
  readonly onChosen: () => void;
}

/** Undefined without any: a place has none, nor has a picture that could not be fetched. */
function previewWords(message: LastMessage | null, from: Readonly<Record<LastMessage['from'], string>>): string | undefined {
  return message === null || message.text === '' ? undefined : `${from[message.from]}${previewMessage(message)}`;
}

function Row({ item, since, href, isCurrent, isUnread, onChosen }: RowProps): ReactNode {
  const words = useWords().inbox;
  const nameOf = useContactName();
  const { assignee, channel, lastMessage, state, title, updatedAt } = item;
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (isCurrent) link.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  const waits = state === 'waiting' ? since : undefined;
  return (
    <li>
      <Link
        ref={link}
        href={href}
        aria-current={isCurrent ? 'page' : undefined}
        className={`block rounded-lg px-2.5 py-2 text-sm forced-colors:aria-[current]:outline ${isCurrent ? 'bg-primary-soft' : 'hover:bg-muted'}`}
        onClick={onChosen}
      >
        <span className="flex items-baseline gap-2">
          <span className={`min-w-0 flex-1 truncate ${isUnread ? 'font-bold' : 'font-medium'}`}>{nameOf(item)}</span>
          {isUnread && <Badge tone="primary">{words.unread}</Badge>}
          <span className="text-xs text-muted-foreground">
            {waits !== undefined && <span className="sr-only">{words.waitsSince} </span>}
            <RelativeTime at={waits ?? lastMessage?.at ?? updatedAt} />
          </span>
        </span>
        <span dir="auto" className="block truncate text-muted-foreground">
          {previewWords(lastMessage, words.from) ?? title}
        </span>
        <span className="mt-0.5 flex items-center gap-1.5 text-xs text-muted-foreground">
          <Badge tone={tones[state]}>{words.states[state]}</Badge>
          <span className="truncate">{channelLabel(channel)}</span>
          {assignee !== null && (
            <span className="ml-auto flex min-w-0 items-center gap-1">
              <StaffIcon className="size-3.5 shrink-0" />
              <span className="sr-only">{words.assignee}</span>
              <span className="truncate">{assignee}</span>
            </span>
          )}
        </span>
      </Link>
    </li>
  );
}
