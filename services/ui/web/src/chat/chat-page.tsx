import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { Conversation } from '../../../src/chat/conversation.ts';
import { findFirstWords, readSenderName, type ConversationState } from '../../../src/chat/conversation-state.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { AgentBadge, channelLabel, AgentChoice } from '../parts/choice.tsx';
import { Button, IconButton } from '../parts/button.tsx';
import { ConversationView } from './conversation-view.tsx';
import { HandoffBanner, useHandover } from '../sessions/handoff.tsx';
import { useNewName, useOtherTabs, useWaitingList } from '../sessions/use-handoffs.ts';
import { useTitle } from '../parts/page.tsx';
import { useCanChange } from '../owner/owner-parts.tsx';
import { CloseIcon, MenuIcon, PlusIcon } from '../parts/icons.tsx';
import { SessionList } from '../sessions/session-list.tsx';
import type { Reach } from '../../../src/signed-in.ts';
import { SentFilesGateway } from './sent-files.tsx';
import { TurnPages } from './turn-card.tsx';
import { useConversation } from './use-conversation.ts';
import { useConversationState } from './use-conversation-state.ts';
import { formatRoute } from '../../../src/chat/route.ts';
import { useWords } from '../words/words.tsx';
import { goTo, isShown, useRoute } from '../use-route.ts';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';

export interface ChatPageProps {
  readonly gateway: GatewayClient;
  readonly reach: Reach;
}

/** With a key for the tenant that may only read, everything is shown and nothing can be changed. */
function useMayWrite(reach: Reach): boolean {
  const mayChange = useCanChange();
  return reach === 'cs' || mayChange;
}

export function ChatPage({ gateway, reach }: ChatPageProps): ReactNode {
  const words = useWords().chat;
  const route = useRoute();
  const conversation = useConversation(gateway, route, reach);
  const waiting = useWaitingList(gateway, reach === 'tenant');
  const [drawer, setDrawer] = useState(false);
  const mayWrite = useMayWrite(reach);
  const newAgent = reach === 'cs' ? 'cs' : (conversation?.snapshot().agent ?? 'admin');

  // A key for cs cannot talk to the admin agent.
  useEffect(() => {
    if (reach === 'cs' && route.page === 'new' && route.agent === 'admin') goTo({ page: 'new', agent: 'cs' });
  }, [reach, route]);

  const begin = (agent: string): void => {
    setDrawer(false);
    goTo({ page: 'new', agent });
  };

  return (
    <div className="flex h-full">
      <Sidebar isOpen={drawer} onClose={() => setDrawer(false)}>
        <div className="px-3 pb-3 md:pt-3">
          <Button tone="primary" className="w-full" onClick={() => begin(newAgent)}>
            <PlusIcon /> {words.newConversation}
          </Button>
        </div>
        {reach === 'tenant' ? (
          <SessionList
            gateway={gateway}
            waiting={waiting}
            conversation={conversation}
            mayWrite={mayWrite}
            contactId={route.page === 'conversation' ? route.contactId : null}
            onChosen={() => setDrawer(false)}
            onChanged={(id) => {
              if (conversation?.snapshot().contactId === id) void conversation.refresh();
            }}
            onDeleted={(id) => {
              if (isShown({ page: 'conversation', contactId: id })) begin(newAgent);
            }}
          />
        ) : (
          <p className="flex-1 px-4 text-sm text-muted-foreground">{words.csOnly}</p>
        )}
      </Sidebar>
      <main className="flex min-w-0 flex-1 flex-col">
        <DemoNotice gateway={gateway} canAsk={reach === 'tenant'} />
        {conversation !== null && (
          <ConversationPage
            gateway={gateway}
            conversation={conversation}
            mayWrite={mayWrite}
            reach={reach}
            onMenu={() => setDrawer(true)}
            onAgent={begin}
          />
        )}
      </main>
    </div>
  );
}

interface ConversationPageProps {
  readonly gateway: GatewayClient;
  readonly conversation: Conversation;
  readonly reach: Reach;
  readonly mayWrite: boolean;
  readonly onMenu: () => void;
  readonly onAgent: (agent: string) => void;
}

function ConversationPage({ gateway, conversation, reach, mayWrite, onMenu, onAgent }: ConversationPageProps): ReactNode {
  const words = useWords().chat;
  useReopening(conversation);
  const state = useConversationState(conversation);
  const title = state.title ?? findFirstWords(state) ?? words.newConversation;
  useTitle(title);
  const isNew = state.contactId === null && state.turns.length === 0;
  const { handoff, actions, isHandable } = useHandover({ gateway, conversation, state, reach });
  const followed = reach === 'tenant' ? state.contactId : null;
  useOtherTabs(conversation, followed);
  useNewName(conversation, followed);
  return (
    <>
      <header className="flex min-h-14 items-center gap-2 border-b px-3 sm:px-5">
        <IconButton label={words.conversations} className="md:hidden" onClick={onMenu}>
          <MenuIcon />
        </IconButton>
        <h1 className="min-w-0 flex-1 truncate text-sm font-semibold">{title}</h1>
        {isNew ? (
          <div className="w-44 shrink-0">
            <AgentChoice gateway={gateway} reach={reach} agent={state.agent} onAgent={onAgent} />
          </div>
        ) : (
          <WhoTalks state={state} />
        )}
        {isHandable && mayWrite && !handoff.isPaused && (
          <Button disabled={actions.isBusy} onClick={actions.takeOver}>
            {words.takeOver}
          </Button>
        )}
      </header>
      <HandoffBanner state={handoff} actions={actions} mayWrite={mayWrite} />
      {state.forkedFrom !== null && <ForkNote original={state.forkedFrom} />}
      <SentFilesGateway value={reach === 'tenant' ? gateway : null}>
        <TurnPages value={reach === 'tenant'}>
          <ConversationView
            key={conversationKey(conversation)}
            gateway={gateway}
            conversation={conversation}
            state={state}
            isWithStaff={handoff.isPaused}
            mayWrite={mayWrite}
            mayList={reach === 'tenant'}
          />
        </TurnPages>
      </SentFilesGateway>
    </>
  );
}

/** The conversation that this one goes on from is there as it was. */
function ForkNote({ original }: { readonly original: string }): ReactNode {
  const words = useWords().chat;
  return (
    <p className="border-b bg-muted px-3 py-1.5 text-xs text-muted-foreground sm:px-5">
      {words.forkOf}{' '}
      <Link href={formatRoute({ page: 'conversation', contactId: original })} className="font-medium underline underline-offset-2">
        {words.toOriginal}
      </Link>
    </p>
  );
}

function WhoTalks({ state: { agent, sender, channel } }: { readonly state: ConversationState }): ReactNode {
  const words = useWords().chat;
  return (
    <p className="flex max-w-[22%] min-w-0 items-center gap-2 sm:max-w-[40%] text-xs text-muted-foreground">
      {agent !== 'admin' && (
        <span className="hidden max-w-48 truncate sm:inline">
          {sender === null ? '' : words.playedAs(readSenderName(sender))}
          {channelLabel(channel)}
        </span>
      )}
      <AgentBadge agent={agent} />
    </p>
  );
}

const conversationKeys = new WeakMap<Conversation, string>();
let lastKey = 0;

/** One for each conversation object, so that a draft is not carried into another conversation. */
function conversationKey(conversation: Conversation): string {
  const known = conversationKeys.get(conversation);
  if (known !== undefined) return known;
  lastKey += 1;
  conversationKeys.set(conversation, String(lastKey));
  return String(lastKey);
}

/**
 * A conversation that could not be opened is one of the queries that have failed: it is opened with them once the
 * service is back.
 */
function useReopening(conversation: Conversation): void {
  useQuery({
    queryKey: ['conversation', conversationKey(conversation)],
    queryFn: async () => {
      if (conversation.snapshot().load.at !== 'ready') await conversation.open();
      const { load } = conversation.snapshot();
      if (load.at === 'failed') throw load.failure;
      return true;
    },
    // The problem and its button would come and go.
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}

interface SidebarProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/**
 * Beside the conversation on a wide screen; on a narrow one a dialog over it, which keeps the focus while it is open.
 */
function Sidebar({ isOpen, onClose, children }: SidebarProps): ReactNode {
  const words = useWords().chat;
  const drawer = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) drawer.current?.showModal();
    else drawer.current?.close();
  }, [isOpen]);
  return (
    <>
      <aside aria-label={words.sidebar} className="hidden w-72 flex-col border-r bg-sidebar md:flex">
        {children}
      </aside>
      <dialog
        ref={drawer}
        aria-label={words.sidebar}
        className="m-0 h-full max-h-none w-72 max-w-[85vw] flex-col border-r bg-sidebar text-foreground shadow-xl open:flex md:hidden!"
        onClose={onClose}
        onClick={(event) => {
          if (event.target === drawer.current) onClose();
        }}
      >
        <div className="flex justify-end p-2">
          <IconButton label={words.close} onClick={onClose}>
            <CloseIcon />
          </IconButton>
        </div>
        {isOpen && children}
      </dialog>
    </>
  );
}

/**
 * Shown when no model is set up and the built-in demo model answers. A key for cs alone may not ask; there every reply
 * states it.
 */
function DemoNotice({ gateway, canAsk }: { readonly gateway: GatewayClient; readonly canAsk: boolean }): ReactNode {
  const words = useWords().chat;
  const tenant = useQuery({
    queryKey: ['tenant'],
    enabled: canAsk,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => gateway.readTenant(signal),
  });
  if (tenant.data?.demoModel !== true) return null;
  return (
    <p role="status" className="border-b bg-muted px-3 py-2 text-xs text-muted-foreground sm:px-5">
      {words.demo}
    </p>
  );
}
