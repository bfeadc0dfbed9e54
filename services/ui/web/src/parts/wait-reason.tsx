import type { WaitReason as Reason, WaitsFor } from '@concierge/contract';
import type { ReactNode } from 'react';
import type { Words } from '../words/en.ts';
import { useFormats, useWords } from '../words/words.tsx';

interface Sentences {
  readonly why: string;
  readonly starts: string;
}

type WaitWords = Words['trace']['waitsFor'];

/** Undefined where the service, of another version, does not say enough: then its own English words stand. */
type Describe = (wait: WaitsFor, words: WaitWords, due: string | null) => Sentences | undefined;

const describers: Readonly<Record<Reason, Describe>> = {
  own_session: ({ isBehindRunning }, { ownSession }) =>
    isBehindRunning === undefined ? undefined : { ...ownSession, why: ownSession.why(isBehindRunning) },
  tenant_share: ({ ahead, placesInUse, places }, { share }) =>
    ahead === undefined || placesInUse === undefined || places === undefined
      ? undefined
      : { ...share, why: share.why(placesInUse, places, ahead) },
  debounce: (_wait, { debounce }, due) => ({ ...debounce, starts: debounce.starts(due) }),
  paused: (_wait, { paused }, due) => ({ ...paused, starts: paused.starts(due) }),
  no_free_slot: describeSlots,
  no_worker: describeSlots,
  staff: (_wait, { staff }) => staff,
};

/** A tenant is told nothing of the workers. */
function describeSlots({ reason, workers, slots = 0 }: WaitsFor, words: WaitWords): Sentences {
  if (workers === undefined) return words.worker;
  return reason === 'no_worker' ? words.noWorker : { ...words.slot, why: words.slot.why(workers, slots) };
}

/** Why a turn waits, in one sentence, and what would start it. */
export function WaitReason({ waitsFor }: { readonly waitsFor: WaitsFor }): ReactNode {
  const words = useWords().trace.waitsFor;
  const formats = useFormats();
  const { reason, dueSeconds } = waitsFor;
  const sentences = describers[reason](waitsFor, words, dueSeconds === undefined ? null : formats.duration(dueSeconds * 1000));
  return (
    <span lang={sentences === undefined ? 'en' : undefined} data-wait={waitsFor.reason}>
      {sentences?.why ?? waitsFor.why}{' '}
      <span className="text-muted-foreground">
        {words.startsWhen} {sentences?.starts ?? waitsFor.startsWhen}
      </span>
    </span>
  );
}
