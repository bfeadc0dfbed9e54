import { routes } from '@concierge/contract';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { Redirect, Route, Switch } from 'wouter';
import { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { formatRoute, parseOldFragment } from '../../../src/chat/route.ts';
import { JsonClient } from '../../../src/json-client.ts';
import {
  BookIcon,
  ChatIcon,
  ClockIcon,
  EnvelopeIcon,
  FileIcon,
  HeartIcon,
  InboxIcon,
  ListIcon,
  PencilIcon,
  PulseIcon,
  StaffIcon,
  SunIcon,
  WorkerIcon,
} from '../parts/icons.tsx';
import { useNotifications } from '../inbox/notifications.ts';
import { WaitingCount } from '../parts/page.tsx';
import { Loading } from '../parts/states.tsx';
import { ApiProvider, useApi } from '../parts/use-api.tsx';
import { useFeed } from '../parts/use-feed.ts';
import { useRecovery } from '../parts/use-recovery.ts';
import { useWaitingList } from '../sessions/use-handoffs.ts';
import { NotFound } from '../shell/not-found.tsx';
import type { PaletteEntry } from '../shell/palette.tsx';
import { Shell, type NavigationItem } from '../shell/shell.tsx';
import type { Words } from '../words/en.ts';
import type { Reach } from '../../../src/signed-in.ts';
import { OwnerSignIn } from '../sign-in/owner-sign-in.tsx';
import { ownerSession, type Owner } from '../sign-in/owner-session.ts';
import { useWords } from '../words/words.tsx';

const AgentsPage = lazy(async () => ({ default: (await import('./agents-page.tsx')).AgentsPage }));
const ChannelPage = lazy(async () => ({ default: (await import('./channel-page.tsx')).ChannelPage }));
const ChannelsPage = lazy(async () => ({ default: (await import('./channels-page.tsx')).ChannelsPage }));
const FilesPage = lazy(async () => ({ default: (await import('./files-page.tsx')).FilesPage }));
const InboxPage = lazy(async () => ({ default: (await import('../inbox/inbox-page.tsx')).InboxPage }));
const MemoryPage = lazy(async () => ({ default: (await import('./memory-page.tsx')).MemoryPage }));
const SchedulesPage = lazy(async () => ({ default: (await import('./schedules-page.tsx')).SchedulesPage }));
const SettingsPage = lazy(async () => ({ default: (await import('./settings-page.tsx')).SettingsPage }));
const SkillsPage = lazy(async () => ({ default: (await import('./skills-page.tsx')).SkillsPage }));
const TodayPage = lazy(async () => ({ default: (await import('./today-page.tsx')).TodayPage }));
const TurnPage = lazy(async () => ({ default: (await import('./turn-page.tsx')).TurnPage }));
const TurnsPage = lazy(async () => ({ default: (await import('./turns-page.tsx')).TurnsPage }));
const UsagePage = lazy(async () => ({ default: (await import('./usage-page.tsx')).UsagePage }));
const ChatPage = lazy(async () => ({ default: (await import('../chat/chat-page.tsx')).ChatPage }));

/** The pages of a tenant's owner, behind the sign-in. */
export function OwnerApp(): ReactNode {
  const queries = useQueryClient();
  const state = useSyncExternalStore(ownerSession.subscribe, ownerSession.snapshot);
  useEffect(() => {
    void ownerSession.load();
  }, []);
  useEffect(() => {
    // What one tenant's key has read is not for the next one.
    if (state.status !== 'signed-in') queries.clear();
  }, [state, queries]);
  if (state.status === 'asking') return <Loading />;
  if (state.status === 'signed-out') return <OwnerSignIn notice={state.notice} />;
  return <OwnerPages owner={state.owner} />;
}

function OwnerPages({ owner }: { readonly owner: Owner }): ReactNode {
  const words = useWords();
  const gateway = useMemo(
    () =>
      new GatewayClient({
        key: owner.key,
        signInId: owner.id,
        onKeyRefused: (failure) => void ownerSession.refuse(owner, failure),
      }),
    [owner],
  );
  const api = useMemo(() => new JsonClient(gateway), [gateway]);
  useFeed(gateway, owner);
  useRecovery();
  const waiting = useWaitingList(gateway, owner.reach === 'tenant');
  useNotifications(waiting);
  return (
    <ApiProvider value={api}>
      <WaitingCount value={waiting.total}>
        <Shell
          title={words.owner.title}
          items={listItems(words, owner.reach, waiting.total)}
          home="/"
          onSignOut={() => void ownerSession.signOut(null)}
          actions={listActions(words, owner.reach)}
          useMore={owner.reach === 'tenant' ? useConversations : undefined}
        >
          <Switch>
            <Route path="/chat/*?">
              <ChatPage gateway={gateway} reach={owner.reach} />
            </Route>
            <Route path="/">
              <FirstPage reach={owner.reach} />
            </Route>
            {owner.reach === 'tenant' && <Route>{tenantPages(gateway)}</Route>}
            <Route>
              <NotFound home="/" />
            </Route>
          </Switch>
        </Shell>
      </WaitingCount>
    </ApiProvider>
  );
}

/** Conversations whose title, sender or last message has these words, as they were when they were found. */
function useConversations(words: string): readonly PaletteEntry[] | null {
  const api = useApi();
  const found = useQuery({
    // Nothing that comes later asks again for what has this key: Enter opens the one that is shown as chosen.
    queryKey: ['palette', words],
    queryFn: async ({ signal }) => api.call(routes.listSessions, { query: { q: words, limit: 8 }, signal }),
    enabled: words !== '',
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (found.isLoading) return null;
  return (found.data ?? []).map(({ id, title }) => ({
    path: formatRoute({ page: 'conversation', contactId: id }),
    label: title,
    icon: <ChatIcon />,
  }));
}

/** Links of earlier versions lead into the chat; a key for the agents of customers has nothing but the chat. */
function FirstPage({ reach }: { readonly reach: Reach }): ReactNode {
  const old = parseOldFragment(location.hash);
  if (old === undefined && reach === 'tenant') return <TodayPage />;
  return <Redirect to={formatRoute(old ?? { page: 'new', agent: 'admin' })} replace />;
}

function listItems({ owner, inbox, tools }: Words, reach: Reach, waiting: number): NavigationItem[] {
  const chat = { path: '/chat', label: owner.chat, icon: <ChatIcon /> };
  if (reach === 'cs') return [chat];
  return [
    { path: '/', label: owner.today.title, icon: <SunIcon /> },
    { path: '/inbox', label: inbox.title, icon: <InboxIcon />, count: waiting },
    chat,
    { path: '/turns', label: owner.turns.title, icon: <ListIcon /> },
    { path: '/schedules', label: owner.schedules.title, icon: <ClockIcon /> },
    { path: '/files', label: owner.files.title, icon: <FileIcon /> },
    { path: '/skills', label: tools.skills.title, icon: <BookIcon /> },
    { path: '/channels', label: owner.channels.title, icon: <EnvelopeIcon /> },
    { path: '/agents', label: owner.agents.title, icon: <StaffIcon /> },
    { path: '/memory', label: owner.memory.title, icon: <HeartIcon /> },
    { path: '/usage', label: owner.usage.title, icon: <PulseIcon /> },
    { path: '/settings', label: owner.settings.title, icon: <WorkerIcon /> },
  ];
}

/** What Ctrl-K begins; what a key may not do is refused where it leads. */
function listActions({ tools: { palette } }: Words, reach: Reach): PaletteEntry[] {
  const agent = reach === 'cs' ? 'cs' : 'admin';
  const conversation = { path: formatRoute({ page: 'new', agent }), label: palette.newConversation, icon: <PencilIcon /> };
  if (reach === 'cs') return [conversation];
  return [conversation, { path: '/schedules?new', label: palette.newSchedule, icon: <ClockIcon /> }];
}

/** The pages of a key that reaches all of the tenant; each is loaded when it is opened. */
function tenantPages(gateway: GatewayClient): ReactNode {
  return (
    <Switch>
      <Route path="/inbox/:id?">{({ id }) => <InboxPage gateway={gateway} id={id} />}</Route>
      <Route path="/turns">
        <TurnsPage />
      </Route>
      <Route path="/turns/:id">{({ id }) => <TurnPage key={id} id={id} />}</Route>
      <Route path="/schedules/:id?">{({ id }) => <SchedulesPage id={id} />}</Route>
      <Route path="/files">
        <FilesPage gateway={gateway} />
      </Route>
      <Route path="/skills">
        <SkillsPage gateway={gateway} />
      </Route>
      <Route path="/channels">
        <ChannelsPage />
      </Route>
      <Route path="/channels/:app">{({ app }) => <ChannelPage key={app} app={app} />}</Route>
      <Route path="/agents">
        <AgentsPage gateway={gateway} />
      </Route>
      <Route path="/memory">
        <MemoryPage gateway={gateway} />
      </Route>
      <Route path="/usage">
        <UsagePage />
      </Route>
      <Route path="/settings">
        <SettingsPage gateway={gateway} />
      </Route>
      <Route>
        <NotFound home="/" />
      </Route>
    </Switch>
  );
}
