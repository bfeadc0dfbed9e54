import type { WaitsFor } from '@concierge/contract';
import type { WaitingLook, WaitingTurns } from './waiting-turns.ts';

type Known = Pick<WaitingLook, 'workers' | 'share'>;

/** Why turns wait and what would start them, for operators: with the places and slots of the whole system. */
export function describeWait(turns: Omit<WaitingTurns, 'sinceMs'>, known: Known): WaitsFor {
  return { reason: turns.reason, ...toSentences(turns, known), behind: turns.behind ?? null, ...toFigures(turns, known) };
}

/** The same for the tenant's own people: nothing of the workers. */
export function describeWaitToTenant(turns: Omit<WaitingTurns, 'sinceMs'>, known: Known): WaitsFor {
  const { reason } = turns;
  if (reason !== 'no_free_slot' && reason !== 'no_worker') return describeWait(turns, known);
  return { reason, why: 'It may run, and waits for a worker.', startsWhen: 'A worker takes it.', behind: turns.behind ?? null };
}

type Undated = Omit<WaitingTurns, 'sinceMs'>;
type Sentences = Pick<WaitsFor, 'why' | 'startsWhen'>;

function toSentences(turns: Undated, { workers, share }: Known): Sentences {
  const { reason, dueInMs } = turns;
  switch (reason) {
    case 'own_session': {
      return behindAnother(turns);
    }
    case 'tenant_share': {
      return inLine(turns, share);
    }
    case 'debounce': {
      return { why: 'It waits for more messages of its conversation.', startsWhen: `Its time is over${soon(dueInMs)}.` };
    }
    case 'no_free_slot': {
      const running = countSlots(workers);
      return {
        why: `It may run, and waits for a free slot of ${count(running.workers, 'worker')} with ${count(running.slots, 'slot')}.`,
        startsWhen: 'A turn ends; more workers, or a larger WORKER_CONCURRENCY, make more slots.',
      };
    }
    case 'no_worker': {
      return { why: 'It may run, and no worker takes turns.', startsWhen: 'A worker starts.' };
    }
    case 'paused': {
      return {
        why: 'It waits for its next try: its tenant is suspended, or an attempt could not go on.',
        startsWhen: `Its time has come${soon(dueInMs)}, and its tenant is not suspended.`,
      };
    }
    case 'staff': {
      return { why: 'A staff member has the conversation.', startsWhen: 'The staff member gives it back.' };
    }
  }
}

/** What the sentences say in numbers, so that a page can say it in another language. */
function toFigures({ reason, dueInMs, isBehindRunning, ahead = 0, admitted = 0 }: Undated, { workers, share }: Known): Partial<WaitsFor> {
  switch (reason) {
    case 'own_session': {
      return { isBehindRunning };
    }
    case 'tenant_share': {
      return { ahead, placesInUse: admitted, places: share };
    }
    case 'no_free_slot':
    case 'no_worker': {
      return countSlots(workers);
    }
    case 'debounce':
    case 'paused': {
      return dueInMs === undefined ? {} : { dueSeconds: Math.round(dueInMs / 100) / 10 };
    }
    case 'staff': {
      return {};
    }
  }
}

/** Of workers that take turns. */
function countSlots(workers: Known['workers']): { readonly workers: number; readonly slots: number } {
  const running = workers.filter(({ state }) => state === 'running');
  return { workers: running.length, slots: running.reduce((sum, { concurrency }) => sum + concurrency, 0) };
}

function count(number: number, noun: string): string {
  return `${String(number)} ${noun}${number === 1 ? '' : 's'}`;
}

function soon(dueInMs: number | undefined): string {
  return dueInMs === undefined ? '' : `, in ${(dueInMs / 1000).toFixed(1)} s`;
}

function behindAnother({ behind, isBehindRunning }: Undated): Sentences {
  const state = isBehindRunning ? 'runs' : 'waits, too';
  return { why: `It waits behind ${behind ?? 'another turn'} of its conversation, which ${state}.`, startsWhen: 'That turn ends.' };
}

function inLine({ ahead = 0, admitted = 0 }: Undated, share: number): Sentences {
  const others = `${count(ahead, 'conversation')} of the tenant ${ahead === 1 ? 'stands' : 'stand'} before it`;
  const place = ahead === 0 ? 'it is the next' : others;
  return {
    why: `It waits for a place: the tenant has ${String(admitted)} of its ${String(share)} places in use, and ${place}.`,
    startsWhen: 'A turn of the tenant ends in another conversation; more workers, or a larger TENANT_SHARE, make more places.',
  };
}
