import { limits } from '@concierge/contract';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { runInSteps, type BulkStep, type BulkTotals } from '../../../src/bulk-run.ts';
import { Button } from '../parts/button.tsx';
import { Dialog } from '../parts/confirm-dialog.tsx';
import { TextField } from '../parts/fields.tsx';
import { SpinnerIcon } from '../parts/icons.tsx';
import { useExplain, useFormats, useWords } from '../words/words.tsx';

/** Between two steps: what fails for the same reason again does not fail all at once. */
const PAUSE_MS = 1000;
const TENANTS_SHOWN = 5;

export interface BulkRequest {
  /** Counts, and does nothing. */
  readonly dryRun: boolean;
  readonly cursor: string | undefined;
  /** Why, in the operator's words; empty where none are asked for or given. */
  readonly reason: string;
  readonly signal: AbortSignal;
}

export interface BulkDialogProps {
  readonly title: string;
  readonly about: ReactNode;
  /** Says what would be done, of so many. */
  readonly would: (count: number) => string;
  /** Says what has been done, of so many. */
  readonly did: (count: number) => string;
  /** The button, with how many. */
  readonly action: (count: number) => string;
  /** Why something is left out. */
  readonly reasons: Readonly<Record<string, string>>;
  /** Asks for a reason, which may be left out. */
  readonly asksReason?: boolean;
  readonly step: (request: BulkRequest) => Promise<BulkStep>;
  /** `isChanged`: something has been done. */
  readonly onClose: (isChanged: boolean) => void;
}

/** counting → counted → running → ended; failed from counting or running. */
type Phase =
  | { readonly name: 'counting' | 'counted' | 'running'; readonly totals: BulkTotals | null }
  | { readonly name: 'ended'; readonly totals: BulkTotals; readonly isStopped: boolean }
  | { readonly name: 'failed'; readonly totals: BulkTotals | null; readonly error: string };

/** Does something to many things at once: counts first, asks, then does it a few at a time and shows how far it is. */
export function BulkDialog({ title, about, asksReason = false, step, onClose, ...texts }: BulkDialogProps): ReactNode {
  const { bulk: words, tenants } = useWords().operate;
  const [reason, setReason] = useState('');
  const bulk = useBulk(async (request) => step({ ...request, reason: reason.trim() }));
  const { phase, planned, stop } = bulk;
  const isDone = phase.name === 'running' || phase.name === 'ended' || phase.name === 'failed';
  const close = (): void => {
    stop();
    onClose(isDone && (phase.totals?.count ?? 0) > 0);
  };
  return (
    <Dialog
      title={title}
      buttons={<Buttons bulk={bulk} action={texts.action} onClose={close} />}
      error={phase.name === 'failed' ? phase.error : null}
      onClose={close}
    >
      <p>{about}</p>
      <div role="status" className="mt-3 rounded-lg bg-muted p-3 text-foreground">
        <Progress title={title} bulk={bulk} texts={texts} />
        {phase.totals !== null && <Details totals={phase.totals} reasons={texts.reasons} />}
      </div>
      {asksReason && phase.name === 'counted' && planned > 0 && (
        <div className="mt-3">
          <TextField
            label={words.reason}
            help={tenants.cancelReasonHelp}
            value={reason}
            maxLength={limits.auditReasonMaxCharacters}
            onChange={setReason}
          />
        </div>
      )}
    </Dialog>
  );
}

interface ButtonsProps extends Pick<BulkDialogProps, 'action'> {
  readonly bulk: Bulk;
  readonly onClose: () => void;
}

function Buttons({ bulk: { phase, planned, start, stop }, action, onClose }: ButtonsProps): ReactNode {
  const words = useWords();
  if (phase.name === 'running') return <Button onClick={stop}>{words.operate.bulk.stop}</Button>;
  return (
    <>
      <Button onClick={onClose}>{phase.name === 'ended' ? words.operate.bulk.close : words.parts.cancel}</Button>
      {phase.name === 'counted' && (
        <Button tone="primary" disabled={planned === 0} onClick={start}>
          {action(planned)}
        </Button>
      )}
    </>
  );
}

interface ProgressProps {
  readonly title: string;
  readonly bulk: Bulk;
  readonly texts: Pick<BulkDialogProps, 'would' | 'did'>;
}

function Progress({ title, bulk: { phase, planned }, texts: { would, did } }: ProgressProps): ReactNode {
  const { bulk } = useWords().operate;
  const count = phase.totals?.count ?? 0;
  switch (phase.name) {
    case 'counting':
      return (
        <p className="flex items-center gap-2">
          <SpinnerIcon /> {bulk.counting}
        </p>
      );
    case 'counted':
      return <p className="font-medium">{planned === 0 ? bulk.nothing : would(planned)}</p>;
    case 'running':
      return (
        <>
          <p>{did(count)}</p>
          <progress aria-label={title} className="mt-2 w-full" max={Math.max(1, planned)} value={count} />
        </>
      );
    case 'ended':
      return <p className="font-medium">{phase.isStopped ? `${did(count)} ${bulk.stopped}` : did(count)}</p>;
    case 'failed':
      return count === 0 ? null : <p>{did(count)}</p>;
  }
}

interface Bulk {
  readonly phase: Phase;
  /** How many the count found. */
  readonly planned: number;
  readonly start: () => void;
  readonly stop: () => void;
}

/** Counts when it is first shown, and does it when it is told to. */
function useBulk(step: (request: Omit<BulkRequest, 'reason'>) => Promise<BulkStep>): Bulk {
  const explain = useExplain();
  const [phase, setPhase] = useState<Phase>({ name: 'counting', totals: null });
  const [planned, setPlanned] = useState(0);
  const running = useRef<AbortController | null>(null);
  const run = async (dryRun: boolean, { signal }: AbortController): Promise<void> => {
    let latest: BulkTotals | null = null;
    const name = dryRun ? 'counting' : 'running';
    setPhase({ name, totals: null });
    const onTotals = (totals: BulkTotals): void => {
      latest = totals;
      if (!signal.aborted) setPhase({ name, totals });
    };
    try {
      const totals = await runInSteps(async (cursor) => step({ dryRun, cursor, signal }), {
        signal,
        onTotals,
        ...(!dryRun && { pause: waitBetweenSteps }),
      });
      if (dryRun && !signal.aborted) {
        setPlanned(totals.count);
        setPhase({ name: 'counted', totals });
      }
      if (!dryRun) setPhase({ name: 'ended', totals, isStopped: signal.aborted });
    } catch (error) {
      if (!signal.aborted) setPhase({ name: 'failed', totals: latest, error: explain(error) });
    }
  };
  useEffect(() => {
    const counting = new AbortController();
    void run(true, counting);
    return () => {
      counting.abort();
      running.current?.abort();
    };
    // Counted once, for what it was opened for.
    // eslint-disable-next-line react-hooks/exhaustive-deps -- see above
  }, []);
  return {
    phase,
    planned,
    start: () => {
      running.current = new AbortController();
      void run(false, running.current);
    },
    stop: () => running.current?.abort(),
  };
}

async function waitBetweenSteps(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, PAUSE_MS);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function Details({ totals, reasons }: { readonly totals: BulkTotals; readonly reasons: BulkDialogProps['reasons'] }): ReactNode {
  const { bulk } = useWords().operate;
  const formats = useFormats();
  const { tenants, skipped } = totals;
  return (
    <ul className="mt-1 text-sm text-muted-foreground">
      {tenants.slice(0, TENANTS_SHOWN).map(({ tenantId, count }) => (
        <li key={tenantId}>{`${tenantId}: ${formats.number(count)}`}</li>
      ))}
      {tenants.length > TENANTS_SHOWN && <li>{bulk.moreTenants(tenants.length - TENANTS_SHOWN)}</li>}
      {skipped.map(({ reason, count }) => (
        <li key={reason}>{bulk.leftOut(count, reasons[reason] ?? reason)}</li>
      ))}
    </ul>
  );
}
