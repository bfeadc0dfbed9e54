import { ConciergeError } from '@concierge/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { OwnerApp } from './owner/owner-app.tsx';
import { Broken } from './shell/broken.tsx';
import { SpeechProvider } from './words/words.tsx';
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

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <SpeechProvider>
        <QueryClientProvider client={queries}>
          <ErrorBoundary FallbackComponent={Broken}>
            <OwnerApp />
          </ErrorBoundary>
        </QueryClientProvider>
      </SpeechProvider>
    </StrictMode>,
  );
}
