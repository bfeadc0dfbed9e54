import { routes, type SessionListItem } from '@concierge/contract';
import { useEffect, useState, type ReactNode } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { navigate } from '../navigation.ts';
import { useFilters } from '../operate/use-filters.ts';
import { useTitle } from '../parts/page.tsx';
import { Empty } from '../parts/states.tsx';
import { useReadPages } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { ContactPane } from './contact-pane.tsx';
import { ConversationList, type InboxFilter } from './conversation-list.tsx';
import { ConversationPane } from './conversation-pane.tsx';
import { useStaffName } from './staff-name.ts';

const PAGE_SIZE = 30;

export interface InboxPageProps {
  readonly gateway: GatewayClient;
  /** The conversation that is shown. */
  readonly id: string | undefined;
}

function useConversations(filter: InboxFilter, q: string) {
  const own = useStaffName();
  const state = filter === 'waiting' || filter === 'failed' ? filter : undefined;
  // Who has not said a name has nothing: no one is called by a space.
  const assignee = filter === 'mine' ? own : undefined;
  const query = { contacts: true, origin: 'user,channel', state, assignee, q, limit: PAGE_SIZE };
  return useReadPages(routes.listSessions, { query }, { isEnabled: assignee !== '' });
}

const toFilter = (text: string): InboxFilter => (text === 'mine' || text === 'waiting' || text === 'failed' ? text : 'all');

/** The same list beside another conversation. */
const toHref = (id: string | undefined): string => `/inbox${id === undefined ? '' : `/${id}`}${location.search}`;

/** Conversations with contacts: who waits, what was said, and who it is; on a phone one of these at a time. */
export function InboxPage({ gateway, id }: InboxPageProps): ReactNode {
  const words = useWords().inbox;
  const { read, change } = useFilters();
  const filter = toFilter(read('show'));
  const query = useConversations(filter, read('q'));
  const items = (query.data?.pages ?? []).flatMap(({ value }) => value);
  const [isContactShown, setContactShown] = useState(false);
  // Of this conversation, while it is shown: no other one is taken over, nor this one when it is come back to.
  const [reply, setReply] = useState<{ readonly id: string; readonly count: number } | null>(null);
  if (reply !== null && reply.id !== id) setReply(null);
  useTitle(words.title);
  const replies = reply !== null && reply.id === id ? reply.count : 0;
  const onReply = (): void => {
    if (id !== undefined) setReply({ id, count: replies + 1 });
  };
  useKeys(items, id, { onReply, onOpen: () => setContactShown(false) });
  return (
    <main className="flex h-full min-h-0">
      <h1 className="sr-only">{words.title}</h1>
      <div className={`w-full min-w-0 flex-col border-r md:w-72 md:shrink-0 lg:w-80 ${id === undefined ? 'flex' : 'hidden md:flex'}`}>
        <ConversationList
          query={query}
          filter={filter}
          asked={read('q')}
          currentId={id}
          toHref={toHref}
          onChange={change}
          onChosen={() => setContactShown(false)}
        />
      </div>
      {id === undefined ? (
        <div className="hidden flex-1 items-center justify-center p-6 md:flex">
          <Empty title={words.choose}>{words.chooseHelp}</Empty>
        </div>
      ) : (
        <>
          <div className={`min-w-0 flex-1 flex-col ${isContactShown ? 'hidden xl:flex' : 'flex'}`}>
            <ConversationPane
              key={id}
              gateway={gateway}
              id={id}
              item={items.find((item) => item.id === id)}
              replies={replies}
              backHref={toHref(undefined)}
              onContact={() => setContactShown(true)}
            />
          </div>
          <div
            className={`min-w-0 flex-col border-l bg-sidebar max-xl:flex-1 xl:w-72 xl:shrink-0 ${isContactShown ? 'flex' : 'hidden xl:flex'}`}
          >
            <ContactPane key={id} gateway={gateway} sessionId={id} toHref={toHref} onClose={() => setContactShown(false)} />
          </div>
        </>
      )}
    </main>
  );
}

interface KeyActions {
  readonly onReply: () => void;
  readonly onOpen: () => void;
}

/** Whether a key is meant for what has the focus, or for a box over the page. */
function isForField({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey || document.querySelector('dialog[open]') !== null) return true;
  return target instanceof HTMLElement && target.closest('input:not([type=radio]), textarea, select, [contenteditable]') !== null;
}

/** j and k go through the list, r answers; e (give back) is the conversation's own. */
function useKeys(items: readonly SessionListItem[], id: string | undefined, { onReply, onOpen }: KeyActions): void {
  useEffect(() => {
    const go = (step: 1 | -1): void => {
      const at = items.findIndex((item) => item.id === id);
      const next = items[at === -1 ? 0 : at + step];
      if (next === undefined) return;
      onOpen();
      navigate(toHref(next.id));
    };
    const onKeyDown = (event: KeyboardEvent): void => {
      if (isForField(event)) return;
      if (event.key === 'j') go(1);
      else if (event.key === 'k') go(-1);
      else if (event.key === 'r' && id !== undefined) onReply();
      else if (event.key === 'e' && id !== undefined) document.querySelector<HTMLElement>('[aria-keyshortcuts=e]')?.click();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  });
}
