import { ConciergeError } from '@concierge/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, type ReactNode, useCallback, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { Button } from './parts/button.tsx';
import { explain } from '../../src/chat/chat-failure.ts';
import { GatewayClient } from '../../src/chat/gateway-client.ts';
import { ChatPage } from './chat/chat-page.tsx';
import { SignIn, forgetSignedIn, loadSignedIn, saveSignedIn } from './sign-in.tsx';
import './styles.css';

/** Lists are asked for sparingly: each request counts against the tenant's allowance. */
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      retry: (count, error) => count < 2 && error instanceof ConciergeError && error.isTransient,
    },
  },
});

/** What remains when a part of the page throws while it is drawn: never an empty page. */
function Broken(): ReactNode {
  return (
    <main role="alert" className="flex h-full flex-col items-center justify-center gap-3 p-6 text-center">
      <p className="max-w-md">This page has a problem and cannot go on. Nothing that was accepted is lost.</p>
      <Button onClick={() => location.reload()}>Reload the page</Button>
    </main>
  );
}

function App(): ReactNode {
  const [signedIn, setSignedIn] = useState(loadSignedIn);
  const [notice, setNotice] = useState<string | null>(null);

  const signOut = useCallback((why: string | null) => {
    forgetSignedIn();
    queries.clear();
    setNotice(why);
    setSignedIn(null);
  }, []);

  const gateway = useMemo(
    () =>
      signedIn === null
        ? null
        : new GatewayClient({
            key: signedIn.key,
            onKeyRefused: (failure) => {
              signOut(`You have been signed out. ${explain(failure)}`);
            },
          }),
    [signedIn, signOut],
  );

  if (signedIn === null || gateway === null) {
    return (
      <SignIn
        notice={notice}
        onSignedIn={(next) => {
          saveSignedIn(next);
          setSignedIn(next);
        }}
      />
    );
  }
  return <ChatPage gateway={gateway} reach={signedIn.reach} onSignOut={() => signOut(null)} />;
}

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <ErrorBoundary FallbackComponent={Broken}>
          <App />
        </ErrorBoundary>
      </QueryClientProvider>
    </StrictMode>,
  );
}
