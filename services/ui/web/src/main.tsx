import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { ChatFailure } from '../../src/chat/chat-failure.ts';
import { App } from './app.tsx';
import './styles.css';

/** Lists are asked for sparingly: each request counts against the tenant's allowance. */
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      retry: (count, error) => count < 2 && error instanceof ChatFailure && error.isPassing,
    },
  },
});

const root = document.querySelector('#root');
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
