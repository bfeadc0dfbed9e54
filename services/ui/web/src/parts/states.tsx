import type { ReactNode } from 'react';
import { useExplain, useWords } from '../words/words.tsx';
import { Button } from './button.tsx';
import { SpinnerIcon } from './icons.tsx';

/** Until what the page shows is there. */
export function Loading(): ReactNode {
  return (
    <p role="status" className="flex items-center gap-2 p-6 text-sm text-muted-foreground">
      <SpinnerIcon /> {useWords().parts.loading}
    </p>
  );
}

export interface EmptyProps {
  readonly title: string;
  /** What to do next. */
  readonly children?: ReactNode;
}

/** A list without an entry: says so, and what to do next. */
export function Empty({ title, children }: EmptyProps): ReactNode {
  return (
    <div className="rounded-xl border border-dashed px-6 py-10 text-center">
      <p className="font-medium">{title}</p>
      {children !== undefined && <div className="mx-auto mt-1 max-w-md text-sm text-muted-foreground">{children}</div>}
    </div>
  );
}

export interface ProblemProps {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What went wrong, what to do about it, and a button to try again. */
export function Problem({ error, onRetry }: ProblemProps): ReactNode {
  const explain = useExplain();
  const words = useWords();
  return (
    <div role="alert" className="rounded-xl bg-danger-soft p-4 text-sm text-danger">
      <p>{explain(error)}</p>
      {onRetry !== undefined && (
        <Button className="mt-2" onClick={onRetry}>
          {words.parts.retry}
        </Button>
      )}
    </div>
  );
}

/** Words of the service that the page has in no other language: a screen reader reads them as English. */
export function ServiceWords({ children }: { readonly children: ReactNode }): ReactNode {
  return <span lang="en">{children}</span>;
}

interface Query<Value> {
  readonly data: Value | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

export interface LoadedProps<Value> {
  readonly query: Query<Value>;
  readonly children: (value: Value) => ReactNode;
}

/**
 * What a query has found; until then that it is being asked, or why not. What was found stays while it is asked for
 * again, also when that fails: then with the problem above it.
 */
export function Loaded<Value>({ query, children }: LoadedProps<Value>): ReactNode {
  const { data, error, refetch } = query;
  const problem = error === null ? null : <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return problem ?? <Loading />;
  return (
    <>
      {problem}
      {children(data)}
    </>
  );
}
