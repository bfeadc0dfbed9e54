import { createContext, useContext, useEffect, type ReactNode } from 'react';

/** How many conversations wait for staff: the title of the tab begins with it. */
export const WaitingCount = createContext(0);

/** Names the browser's tab, also for one who looks at another tab. */
export function useTitle(title: string): void {
  const waiting = useContext(WaitingCount);
  useEffect(() => {
    document.title = `${waiting === 0 ? '' : `(${String(waiting)}) `}${title} · Concierge`;
  }, [title, waiting]);
}

export interface PageProps {
  readonly title: string;
  /** What is to be seen here, in one sentence. */
  readonly about?: ReactNode;
  /** Buttons of the whole page. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** One page of the console, which scrolls by itself; its title is the tab's. */
export function Page({ title, about, actions, children }: PageProps): ReactNode {
  useTitle(title);
  return (
    <main tabIndex={0} className="h-full overflow-y-auto -outline-offset-2">
      <div className="mx-auto max-w-6xl space-y-5 px-4 py-5 sm:px-6">
        <div className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
          <div className="min-w-0">
            <h1 className="text-xl font-semibold tracking-tight wrap-anywhere">{title}</h1>
            {about !== undefined && <p className="mt-0.5 text-sm text-muted-foreground">{about}</p>}
          </div>
          {actions !== undefined && <div className="flex flex-wrap gap-2">{actions}</div>}
        </div>
        {children}
      </div>
    </main>
  );
}

export interface SectionProps {
  readonly title: string;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Section({ title, about, actions, children }: SectionProps): ReactNode {
  return (
    <section className="space-y-2">
      <div className="flex flex-wrap items-end justify-between gap-2">
        <div>
          <h2 className="text-sm font-semibold">{title}</h2>
          {about !== undefined && <p className="text-sm text-muted-foreground">{about}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}

type Tone = 'plain' | 'ok' | 'warn' | 'danger' | 'primary';

const tones: Readonly<Record<Tone, string>> = {
  plain: 'bg-muted text-muted-foreground',
  ok: 'bg-muted text-ok',
  warn: 'bg-warn-soft text-warn',
  danger: 'bg-danger-soft text-danger',
  primary: 'bg-primary-soft text-primary',
};

/** One word about a thing: its state, its kind. */
export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ReactNode }): ReactNode {
  return (
    <span className={`inline-block rounded px-1.5 py-px text-xs leading-5 font-medium whitespace-nowrap ${tones[tone]}`}>{children}</span>
  );
}

export interface TileProps {
  readonly label: string;
  readonly value: ReactNode;
  readonly note?: ReactNode;
  readonly tone?: Tone;
}

/** One number that matters. */
export function Tile({ label, value, note, tone = 'plain' }: TileProps): ReactNode {
  const color = tone === 'danger' ? 'text-danger' : tone === 'warn' ? 'text-warn' : 'text-foreground';
  return (
    <div className="h-full rounded-xl border bg-card px-4 py-3">
      <p className="text-xs font-medium hyphens-auto text-muted-foreground wrap-anywhere">{label}</p>
      <p className={`mt-0.5 text-2xl font-semibold tracking-tight tabular-nums ${color}`}>{value}</p>
      {note !== undefined && <p className="text-xs text-muted-foreground">{note}</p>}
    </div>
  );
}
