import { ConciergeError } from '@concierge/client';
import type { Route } from '@concierge/contract';
import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
  type QueryClient,
  type QueryFilters,
  type UseInfiniteQueryResult,
  type UseMutationResult,
  type UseQueryResult,
} from '@tanstack/react-query';
import { createContext, useContext, type ReactNode } from 'react';
import type { AnswerOf, Call, JsonClient } from '../../../src/json-client.ts';
import { useWords } from '../words/words.tsx';
import { Button } from './button.tsx';
import { Loaded } from './states.tsx';

const ApiContext = createContext<JsonClient | null>(null);

/** The client of the signed-in owner or operator, for the pages below it. */
export const ApiProvider = ApiContext;

/** @throws Error outside of an ApiProvider */
export function useApi(): JsonClient {
  const api = useContext(ApiContext);
  if (api === null) throw new Error('this page is not within an ApiProvider');
  return api;
}

/** A feed says when to ask again: nothing asks by the clock then. */
export const FedPages = createContext(false);

interface Asked {
  readonly state: { readonly error: Error | null };
}

interface AskAgain {
  readonly refetchInterval: (query: Asked) => number | false;
  readonly refetchOnWindowFocus: (query: Asked) => boolean;
  readonly refetchOnReconnect: (query: Asked) => boolean;
}

interface ReadOptions {
  /** Asks again so often, as long as the tab is looked at and no feed is read. */
  readonly everyMs?: number;
  readonly isEnabled?: boolean;
}

/**
 * When a question is asked again by itself: never of who is signed out, since the sign-in, with what is being typed
 * there, would give way to the question each time.
 */
function askAgain(everyMs: number | false = false): AskAgain {
  const isIn = ({ state }: Asked): boolean => !isSignedOut(state.error);
  return {
    refetchInterval: (query) => isIn(query) && everyMs,
    refetchOnWindowFocus: isIn,
    refetchOnReconnect: isIn,
  };
}

/** What a route answers, under a key that begins with the route's id: invalidate `[route.id]` after a change. */
export function useRead<R extends Route>(
  route: R,
  call: Call<R> = {},
  { everyMs, isEnabled = true }: ReadOptions = {},
): UseQueryResult<AnswerOf<R>> {
  const api = useApi();
  const isFed = useContext(FedPages);
  return useQuery({
    queryKey: [route.id, call.params ?? {}, call.query ?? {}],
    queryFn: async ({ signal }) => api.call(route, { ...call, signal }),
    enabled: isEnabled,
    // While a filter is typed, the list before it stays.
    placeholderData: keepPreviousData,
    ...askAgain(isFed ? false : everyMs),
    ...(everyMs !== undefined && { staleTime: 0 }),
  });
}

interface Pages<Value> {
  readonly pages: readonly { readonly value: Value }[];
}

/** A list by pages, each after the cursor of the one before; `LoadedPages` shows them. */
export function useReadPages<R extends Route>(
  route: R,
  call: Call<R> = {},
  { everyMs, isEnabled = true }: ReadOptions = {},
): UseInfiniteQueryResult<Pages<AnswerOf<R>>> {
  const api = useApi();
  const isFed = useContext(FedPages);
  return useInfiniteQuery({
    queryKey: [route.id, call.params ?? {}, call.query ?? {}],
    initialPageParam: undefined as string | undefined,
    queryFn: async ({ pageParam, signal }) => api.list(route, { ...call, query: { ...call.query, cursor: pageParam }, signal }),
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    enabled: isEnabled,
    // While a filter is typed, the list before it stays.
    placeholderData: keepPreviousData,
    ...askAgain(isFed ? false : everyMs),
    ...(everyMs !== undefined && { staleTime: 0 }),
  });
}

/**
 * What a change here has made old is asked for again. A first answer that is under way may be from before the change:
 * it is given up, since it would not be asked for a second time.
 */
export async function askAnew(queries: QueryClient, filters: QueryFilters = {}): Promise<void> {
  await queries.cancelQueries(filters);
  await queries.invalidateQueries(filters);
}

/** A route that changes something; what `affects` names is asked again afterwards. */
export function useChange<R extends Route>(route: R, affects: readonly Route[]): UseMutationResult<AnswerOf<R>, unknown, Call<R>> {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async (call: Call<R>) => api.call(route, call),
    onSuccess: async () => {
      await Promise.all(affects.map(async ({ id }) => askAnew(queries, { queryKey: [id] })));
    },
  });
}

interface MorePagesProps {
  readonly query: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>;
}

/** Loads the next page of a list; nothing where there is none. */
function MorePages({ query }: MorePagesProps): ReactNode {
  const words = useWords();
  if (!query.hasNextPage) return null;
  return (
    <div className="text-center">
      <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
        {query.isFetchingNextPage ? words.parts.loading : words.parts.more}
      </Button>
    </div>
  );
}

export interface LoadedPagesProps<Value, Row> {
  readonly query: UseInfiniteQueryResult<Pages<Value>>;
  /** The rows of one page. */
  readonly read: (value: Value) => readonly Row[];
  /** Shown in place of no rows at all. */
  readonly empty: ReactNode;
  readonly children: (rows: readonly Row[]) => ReactNode;
}

/** The rows of all pages that were loaded, and a button for the next one. */
export function LoadedPages<Value, Row>({ query, read, empty, children }: LoadedPagesProps<Value, Row>): ReactNode {
  return (
    <Loaded query={query}>
      {({ pages }) => {
        const rows = pages.flatMap(({ value }) => read(value));
        return (
          <>
            {rows.length === 0 ? empty : children(rows)}
            <MorePages query={query} />
          </>
        );
      }}
    </Loaded>
  );
}

/** Whether a request failed because there is no sign-in, or none that is still valid. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ConciergeError && error.status === 401;
}
