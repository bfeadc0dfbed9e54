import { ConciergeError } from '@concierge/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { lazy, StrictMode, Suspense, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { Router, useLocation } from 'wouter';
import { useConsoleLocation } from './navigation.ts';
import { Loading } from './parts/states.tsx';
import { Broken } from './shell/broken.tsx';
import { SpeechProvider } from './words/words.tsx';
import './styles.css';

const OwnerApp = lazy(async () => ({ default: (await import('./owner/owner-app.tsx')).OwnerApp }));
const OperateApp = lazy(async () => ({ default: (await import('./operate/operate-app.tsx')).OperateApp }));

/**
 * Lists are asked for sparingly: each request counts against the tenant's allowance. But also while the browser takes
 * itself for offline: the service may be on the same machine.
 */
const queries = new QueryClient({
  defaultOptions: {
    mutations: { networkMode: 'always' },
    queries: {
      networkMode: 'always',
      // Without a word of it, no longer with that mode.
      refetchOnReconnect: true,
      staleTime: 60_000,
      retry: (count, error) => count < 2 && error instanceof ConciergeError && error.isTransient,
    },
  },
});

/** Owners and operators have nothing in common but the frame. */
function App(): ReactNode {
  const [path] = useLocation();
  return <Suspense fallback={<Loading />}>{/^\/operate(?:\/|$)/u.test(path) ? <OperateApp /> : <OwnerApp />}</Suspense>;
}

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <SpeechProvider>
        <QueryClientProvider client={queries}>
          <ErrorBoundary FallbackComponent={Broken}>
            <Router hook={useConsoleLocation}>
              <App />
            </Router>
          </ErrorBoundary>
        </QueryClientProvider>
      </SpeechProvider>
    </StrictMode>,
  );
}
