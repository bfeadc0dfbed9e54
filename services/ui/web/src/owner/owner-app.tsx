import { useQueryClient } from '@tanstack/react-query';
import { lazy, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { Redirect, Route, Switch } from 'wouter';
import { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { formatRoute, parseOldFragment } from '../../../src/chat/route.ts';
import { JsonClient } from '../../../src/json-client.ts';
import { ChatIcon } from '../parts/icons.tsx';
import { Loading } from '../parts/states.tsx';
import { ApiProvider } from '../parts/use-api.tsx';
import { NotFound } from '../shell/not-found.tsx';
import { Shell } from '../shell/shell.tsx';
import { OwnerSignIn } from '../sign-in/owner-sign-in.tsx';
import { ownerSession, type Owner } from '../sign-in/owner-session.ts';
import { useWords } from '../words/words.tsx';

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
    () => new GatewayClient({ key: owner.key, onKeyRefused: (failure) => void ownerSession.refuse(owner, failure) }),
    [owner],
  );
  const api = useMemo(() => new JsonClient(gateway), [gateway]);
  const items = [{ path: '/chat', label: words.owner.chat, icon: <ChatIcon /> }];
  return (
    <ApiProvider value={api}>
      <Shell title={words.owner.title} items={items} home="/" onSignOut={() => void ownerSession.signOut(null)}>
        <Switch>
          <Route path="/">
            <Redirect to={formatRoute(parseOldFragment(location.hash) ?? { page: 'new', agent: 'admin' })} replace />
          </Route>
          <Route path="/chat/*?">
            <ChatPage gateway={gateway} reach={owner.reach} />
          </Route>
          <Route>
            <NotFound home="/" />
          </Route>
        </Switch>
      </Shell>
    </ApiProvider>
  );
}
