import type { HandoffState, WaitingHandoff } from '@concierge/contract';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, type ReactNode } from 'react';
import { hasEnded } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import type { ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient, WaitingList } from '../../../src/chat/gateway-client.ts';
import { previewMessage } from '../../../src/chat/preview-message.ts';
import type { Reach } from '../../../src/signed-in.ts';
import { useExplain, useFormats, useWords } from '../words/words.tsx';
import { Button } from '../parts/button.tsx';
import { StaffIcon } from '../parts/icons.tsx';
import { Link } from 'wouter';
import { formatRoute } from '../../../src/chat/route.ts';
import { channelLabel } from '../parts/choice.tsx';
import { useHandoff } from './use-handoffs.ts';
import { askAnew } from '../parts/use-api.tsx';

export interface HandoffActions {
  readonly takeOver: () => void;
  readonly giveBack: () => void;
  readonly isBusy: boolean;
  readonly problem: string | null;
}

/** Passes the conversation on, and looks at once at what has become of it. */
function useHandoffActions(gateway: GatewayClient, sessionId: string): HandoffActions {
  const explain = useExplain();
  const queries = useQueryClient();
  const onSettled = async (): Promise<void> => {
    await Promise.all([askAnew(queries, { queryKey: ['handoff', sessionId] }), askAnew(queries, { queryKey: ['handoffs'] })]);
  };
  const taking = useMutation({ mutationFn: async () => gateway.takeOver(sessionId), onSettled });
  const giving = useMutation({ mutationFn: async () => gateway.giveBack(sessionId), onSettled });
  const error: unknown = taking.error ?? giving.error;
  return {
    takeOver: () => taking.mutate(),
    giveBack: () => giving.mutate(),
    isBusy: taking.isPending || giving.isPending,
    problem: error === null ? null : explain(error),
  };
}

export interface HandoverOptions {
  readonly gateway: GatewayClient;
  readonly conversation: Conversation;
  readonly state: ConversationState;
  readonly reach: Reach;
}

export interface Handover {
  readonly handoff: HandoffState;
  readonly actions: HandoffActions;
  /** Whether staff could take it over. */
  readonly isHandable: boolean;
}

const withAgent: HandoffState = { isPaused: false, handoff: null };

/** Who has the conversation that is shown; while that is staff, the contact's messages are shown as they come. */
export function useHandover({ gateway, conversation, state, reach }: HandoverOptions): Handover {
  const { contactId, agent, turns } = state;
  // The owner already takes part in a conversation of their own; the service does not know a conversation without a
  // stored turn.
  const isHandable = reach === 'tenant' && agent !== 'admin' && turns.some((turn) => turn.turnId !== null && hasEnded(turn));
  const { data, dataUpdatedAt } = useHandoff(gateway, isHandable ? contactId : null);
  const actions = useHandoffActions(gateway, contactId ?? '');
  const handoff = isHandable ? (data?.value ?? withAgent) : withAgent;
  const { isPaused } = handoff;
  useEffect(() => {
    if (isPaused) void conversation.refresh();
  }, [conversation, isPaused, dataUpdatedAt]);
  return { handoff, actions, isHandable };
}

interface HandoffBannerProps {
  readonly state: HandoffState;
  readonly actions: HandoffActions;
  readonly mayWrite: boolean;
}

/** Shows that staff has the conversation, why and until when; nothing while the agent has it. */
export function HandoffBanner({ state, actions, mayWrite }: HandoffBannerProps): ReactNode {
  const words = useWords().chat.handoff;
  if (!state.isPaused && actions.problem === null) return null;
  return (
    <section aria-label={words.region} className="border-b bg-warn-soft px-4 py-2.5 text-sm sm:px-6">
      {state.isPaused && (
        <div className="mx-auto flex max-w-3xl flex-wrap items-center gap-x-3 gap-y-2">
          <StaffIcon className="size-4 shrink-0 text-warn" />
          <p className="min-w-48 flex-1 [overflow-wrap:anywhere]">
            <strong className="font-semibold text-warn">{words.withStaff}</strong> <Why state={state} />
          </p>
          {mayWrite && (
            <Button disabled={actions.isBusy} onClick={actions.giveBack}>
              {words.giveBack}
            </Button>
          )}
        </div>
      )}
      {actions.problem !== null && (
        <p role="alert" className="mx-auto max-w-3xl text-danger">
          {actions.problem}
        </p>
      )}
    </section>
  );
}

function Why({ state: { handoff } }: { readonly state: HandoffState }): ReactNode {
  const words = useWords().chat.handoff;
  const formats = useFormats();
  if (handoff === null) return <>{words.damaged}</>;
  const { reason, since, until } = handoff;
  const now = Date.now();
  return (
    <>
      {reason}{' '}
      <span className="text-muted-foreground">
        {words.since}{' '}
        <time dateTime={since} title={formats.exactTime(since)}>
          {formats.clockTime(since, now)}
        </time>
        {until === null ? words.untilGivenBack : `${words.until} `}
        {until !== null && (
          <time dateTime={until} title={formats.exactTime(until)}>
            {formats.clockTime(until, now)}
          </time>
        )}
      </span>
    </>
  );
}

interface WaitingSectionProps {
  readonly waiting: WaitingList;
  readonly contactId: string | null;
  readonly now: number;
  readonly onChosen: () => void;
}

/** Conversations that wait for staff, above all others; nothing while there are none. */
export function WaitingSection({ waiting: { items, total }, contactId, now, onChosen }: WaitingSectionProps): ReactNode {
  const words = useWords().chat.handoff;
  if (total === 0) return null;
  return (
    <section aria-label={words.waiting} className="mb-2 max-h-[40vh] overflow-y-auto border-b px-2 pb-2">
      <h2 className="flex items-center gap-1.5 px-2.5 py-1 text-xs font-semibold text-warn">
        <StaffIcon className="size-3.5" />
        <span className="flex-1">{words.waiting}</span>
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
  const words = useWords().chat.list;
  const formats = useFormats();
  const { sessionId, title, reason, channel, since, lastMessage } = item;
  return (
    <li className={`rounded-lg ${current ? 'bg-primary-soft' : 'hover:bg-muted'}`}>
      <Link
        href={formatRoute({ page: 'conversation', contactId: sessionId })}
        aria-current={current ? 'page' : undefined}
        title={reason}
        className="block rounded-lg px-2.5 py-2"
        onClick={onChosen}
      >
        <span className="block truncate text-sm">{title ?? words.untitled}</span>
        <span className="block truncate text-xs text-muted-foreground">
          {lastMessage?.from === 'contact' && lastMessage.text !== '' ? previewMessage(lastMessage) : reason}
        </span>
        <span className="mt-0.5 flex items-center gap-1.5 text-xs text-muted-foreground">
          {channel !== null && <span className="truncate">{channelLabel(channel)}</span>}
          <time dateTime={since} title={formats.exactTime(since)} className="ml-auto tabular-nums">
            {formats.relative(since, now)}
          </time>
        </span>
      </Link>
    </li>
  );
}
