import { createContext, useCallback, useContext, useEffect, useRef, useState, type ReactNode } from 'react';
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

/** Has what is shown around the one who calls it stay as it is, until what it answers is called. */
export const Holding = createContext<() => () => void>(() => () => undefined);

export interface HeldProps<Value> {
  readonly value: Value;
  readonly children: (value: Value) => ReactNode;
}

/**
 * Shows a value that changes by itself, and stays as it is while a dialog is open in it: a row that moved or went would
 * take its question along, and one whose state changed would have the button do something else than it asked.
 */
export function Held<Value>({ value, children }: HeldProps<Value>): ReactNode {
  const holdAbove = useContext(Holding);
  const [held, setHeld] = useState<{ readonly value: Value; readonly dialogs: number } | null>(null);
  const latest = useRef(value);
  useEffect(() => {
    latest.current = value;
  }, [value]);
  const hold = useCallback(() => {
    const shown = latest.current;
    setHeld((before) => ({ value: before === null ? shown : before.value, dialogs: (before?.dialogs ?? 0) + 1 }));
    const releaseAbove = holdAbove();
    return () => {
      setHeld((before) => (before === null || before.dialogs === 1 ? null : { ...before, dialogs: before.dialogs - 1 }));
      releaseAbove();
    };
  }, [holdAbove]);
  return <Holding value={hold}>{children(held === null ? value : held.value)}</Holding>;
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
 * again, also when that fails: then with the problem above it. It is held as long as a dialog is open in it.
 */
export function Loaded<Value>({ query, children }: LoadedProps<Value>): ReactNode {
  const { data, error, refetch } = query;
  const problem = error === null ? null : <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return problem ?? <Loading />;
  return (
    <>
      {problem}
      <Held value={data}>{children}</Held>
    </>
  );
}
