import { routes, type HandoffState, type SessionListItem } from '@concierge/contract';
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { useCanChange } from '../owner/owner-parts.tsx';
import { Button } from '../parts/button.tsx';
import { channelLabel } from '../parts/choice.tsx';
import { ChevronIcon, StaffIcon } from '../parts/icons.tsx';
import { Loaded, Problem } from '../parts/states.tsx';
import { askAnew, useApi, useChange, useRead } from '../parts/use-api.tsx';
import { TurnWaitsProvider } from '../sessions/turn-waits.tsx';
import { useExplain, useFormats, useWords } from '../words/words.tsx';
import { useContactName } from './conversation-list.tsx';
import { MessageList } from './message-list.tsx';
import { ReplyField, type SentReply } from './reply-field.tsx';
import { useMarkSeen } from './seen.ts';
import { useLiveTurns } from './use-live-turns.ts';

/** Turns of one page of the conversation. */
const TURNS = 30;

export interface ConversationPaneProps {
  readonly gateway: GatewayClient;
  readonly id: string;
  /** Its row, where the list has it. */
  readonly item: SessionListItem | undefined;
  /** How often an answer was asked for by its key. */
  readonly replies: number;
  readonly backHref: string;
  readonly onContact: () => void;
}

/** The last turns first; earlier ones page by page. */
function useMessages(id: string) {
  const api = useApi();
  return useInfiniteQuery({
    queryKey: [routes.getSession.id, { id }, { limit: TURNS }],
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }) =>
      api.call(routes.getSession, { params: { id }, query: { limit: TURNS, before: pageParam }, signal }),
    getNextPageParam: (page) => ('before' in page ? (page.before ?? undefined) : undefined),
  });
}

/** What was said with a contact, who has it, and where staff answers. */
export function ConversationPane({ gateway, id, item, replies, backHref, onContact }: ConversationPaneProps): ReactNode {
  const words = useWords().inbox;
  const query = useMessages(id);
  const { data: state, error: stateError, refetch: askState } = useRead(routes.getHandoff, { params: { id } });
  const isPaused = state?.isPaused === true;
  const staff = useRead(routes.getSessionStaff, { params: { id } }).data;
  const canChange = useCanChange();
  const removal = useChange(routes.removeStaffNote, [routes.getSessionStaff]);
  const [sent, setSent] = useState<readonly SentReply[]>([]);
  const live = useLiveTurns(gateway, id);
  const first = query.data?.pages[0];
  useMarkSeen(id, first && (item?.lastMessage?.at ?? first.updatedAt));
  return (
    <>
      <header className="flex min-h-14 flex-wrap items-center gap-2 border-b px-3 py-2 sm:px-4">
        <Link href={backHref} aria-label={words.back} title={words.back} className="rounded-lg p-2 hover:bg-muted md:hidden">
          <ChevronIcon className="size-5 rotate-180" />
        </Link>
        <WhoItIs id={id} item={item} first={first} />
        <Button className="xl:hidden" onClick={onContact}>
          {words.showContact}
        </Button>
        {state !== undefined && <HandoffButtons gateway={gateway} id={id} state={state} replies={replies} />}
      </header>
      {state === undefined ? (
        stateError !== null && <Problem error={stateError} onRetry={() => void askState()} />
      ) : (
        <Banner state={state} />
      )}
      <Loaded query={query}>
        {({ pages }) => (
          <TurnWaitsProvider contactId={id} turns={live} mayList>
            <MessageList
              messages={pages.toReversed().flatMap((page) => page.messages)}
              // Of what the contact writes to staff nothing is answered.
              live={isPaused ? live.filter(({ parts }) => parts.length > 0) : live}
              sent={sent}
              notes={staff?.notes ?? []}
              onRemoveNote={canChange ? async (note) => removal.mutateAsync({ params: { id, note } }) : undefined}
              hasEarlier={query.hasNextPage}
              onEarlier={() => void query.fetchNextPage()}
            />
          </TurnWaitsProvider>
        )}
      </Loaded>
      {state !== undefined && !isPaused && (
        <p className="border-t px-4 pt-2 text-center text-xs text-muted-foreground">{words.agentHasIt}</p>
      )}
      <ReplyField
        sessionId={id}
        gateway={gateway}
        canAnswer={isPaused}
        replies={replies}
        onSent={(reply) => setSent((before) => [...before, reply])}
      />
    </>
  );
}

interface WhoItIsProps extends Pick<ConversationPaneProps, 'id' | 'item'> {
  /** The conversation, once it is there. */
  readonly first: Pick<SessionListItem, 'channel' | 'agent'> | undefined;
}

function WhoItIs({ id, item, first }: WhoItIsProps): ReactNode {
  const words = useWords().inbox;
  const nameOf = useContactName();
  const contact = useRead(routes.getSessionContact, { params: { id } }).data;
  const name = contact === undefined ? (item === undefined ? words.contact : nameOf(item)) : (contact.displayName ?? nameOf(contact));
  return (
    <div className="min-w-0 flex-1">
      <h2 className="truncate text-sm font-semibold">{name}</h2>
      {first !== undefined && (
        <p className="truncate text-xs text-muted-foreground">
          {channelLabel(first.channel)} · {first.agent} ·{' '}
          <Link href={`/chat/${id}`} className="underline">
            {words.openInChat}
          </Link>
        </p>
      )}
    </div>
  );
}

interface HandoffButtonsProps {
  readonly gateway: GatewayClient;
  readonly id: string;
  readonly state: HandoffState;
  readonly replies: number;
}

/** Takes the conversation over or gives it back; the key for an answer takes it over, too. */
function HandoffButtons({ gateway, id, state: { isPaused }, replies }: HandoffButtonsProps): ReactNode {
  const words = useWords().inbox;
  const explain = useExplain();
  const queries = useQueryClient();
  const canChange = useCanChange();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async (wish: 'take' | 'give') => (wish === 'take' ? gateway.takeOver(id) : gateway.giveBack(id)),
    onSettled: async () => {
      const keys = [[routes.getHandoff.id, { id }], [routes.listHandoffs.id], ['handoffs'], ['handoff', id], [routes.listSessions.id]];
      await Promise.all(keys.map(async (queryKey) => askAnew(queries, { queryKey })));
    },
  });
  useEffect(() => {
    if (replies > 0 && canChange) mutate('take');
  }, [replies, canChange, mutate]);
  if (!canChange) return null;
  return (
    <>
      {isPaused ? (
        <Button aria-keyshortcuts="e" disabled={isPending} onClick={() => mutate('give')}>
          {words.giveBack}
        </Button>
      ) : (
        <Button tone="primary" aria-keyshortcuts="r" disabled={isPending} onClick={() => mutate('take')}>
          {words.takeOver}
        </Button>
      )}
      {error !== null && (
        <p role="alert" className="w-full text-sm text-danger">
          {explain(error)}
        </p>
      )}
    </>
  );
}

/** That staff has the conversation, and why; nothing while the agent has it. */
function Banner({ state: { isPaused, handoff } }: { readonly state: HandoffState }): ReactNode {
  const words = useWords().inbox;
  const formats = useFormats();
  if (!isPaused) return null;
  return (
    <p className="flex items-start gap-2 border-b bg-warn-soft px-4 py-2 text-sm wrap-anywhere">
      <StaffIcon className="mt-0.5 size-4 shrink-0 text-warn" />
      <span>
        <strong className="font-semibold text-warn">{words.withStaff}</strong> {handoff === null ? words.damagedReason : handoff.reason}
        {handoff?.until != null && ` ${words.until(formats.time(handoff.until))}.`}
      </span>
    </p>
  );
}
