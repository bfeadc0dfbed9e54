import { isMessagingChannel, routes, toAppName, type ChannelName } from '@concierge/contract';
import { useId, type ReactNode } from 'react';
import { Badge } from '../parts/page.tsx';
import { useRead } from '../parts/use-api.tsx';
import { Problem } from '../parts/states.tsx';
import { Button, CopyButton } from '../parts/button.tsx';
import { useFormats, useWords } from '../words/words.tsx';

/** Whether the key of the sign-in may change anything; true until that is known, so that nothing flickers. */
export function useCanChange(): boolean {
  return useRead(routes.whoAmI).data?.scopes.includes('admin') ?? true;
}

/** What went wrong with a change; nothing while nothing did. */
export function ChangeProblem({ change }: { readonly change: { readonly error: unknown } }): ReactNode {
  return change.error === null ? null : <Problem error={change.error} />;
}

/** What a change has done, for screen readers, too. */
export function Done({ children }: { readonly children: ReactNode }): ReactNode {
  return (
    <p role="status" className="rounded-xl bg-muted px-3 py-2 text-sm text-ok">
      {children}
    </p>
  );
}

interface SubmitRowProps {
  readonly change: { readonly error: unknown; readonly isPending: boolean; readonly isSuccess: boolean };
  readonly canChange: boolean;
  readonly label: string;
  /** What is said when it has worked. */
  readonly done: string;
}

/** The end of a form: its button, for a key that may change anything, and what became of the change. */
export function SubmitRow({ change, canChange, label, done }: SubmitRowProps): ReactNode {
  return (
    <>
      {canChange && (
        <Button type="submit" tone="primary" disabled={change.isPending}>
          {label}
        </Button>
      )}
      <ChangeProblem change={change} />
      {change.isSuccess && <Done>{done}</Done>}
    </>
  );
}

/** Empties a field once what stood in it has been stored; what has been written into it meanwhile stays. */
export function clearSent(sent: string): (now: string) => string {
  return (now) => (now === sent ? '' : now);
}

type Status = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';
const tones = { waiting: 'warn', running: 'primary', done: 'ok', failed: 'danger', cancelled: 'plain' } as const;

export function StatusBadge({ status }: { readonly status: Status }): ReactNode {
  return <Badge tone={tones[status]}>{useWords().owner.status[status]}</Badge>;
}

/** A value that is made to be copied: an address, a token, a line of code. */
export function Copyable({ label, text }: { readonly label: string; readonly text: string }): ReactNode {
  const words = useWords();
  return (
    <div className="min-w-0">
      <p className="mb-1 text-xs font-medium text-muted-foreground">{label}</p>
      <div className="flex items-start gap-1 rounded-lg border bg-muted/50 py-1 pr-1 pl-3">
        <code className="min-w-0 flex-1 py-1 text-xs wrap-anywhere">{text}</code>
        <CopyButton text={text} label={words.owner.copyAs(label)} />
      </div>
    </div>
  );
}

/** The name of a channel in addresses of the console. */
export function toChannelSlug(channel: ChannelName): string {
  return isMessagingChannel(channel) ? toAppName(channel) : channel;
}

/** A time with its offset, without it: written as the clocks of its zone show it, wherever the reader is. */
export function toWallTime(at: string): string {
  return at.slice(0, 'YYYY-MM-DDTHH:MM:SS'.length);
}

/** The next times of a schedule, as its zone writes them. */
export function NextRuns({ runs }: { readonly runs: readonly string[] }): ReactNode {
  const words = useWords().owner.schedules;
  const formats = useFormats();
  const labelId = useId();
  return (
    <div className="text-sm">
      <p id={labelId} className="text-xs font-medium text-muted-foreground">
        {words.next}
      </p>
      {runs.length === 0 ? (
        <p>{words.noNext}</p>
      ) : (
        <ol aria-labelledby={labelId} className="flex flex-wrap gap-x-4 gap-y-1 tabular-nums">
          {runs.map((run) => (
            <li key={run} title={formats.exactTime(run)}>
              {formats.time(toWallTime(run))}
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}
