import { ConciergeError } from '@concierge/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { App } from './app.tsx';
import { Button } from './parts/button.tsx';
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
