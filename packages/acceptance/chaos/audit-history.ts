import type { AuditInput } from './audit-input.ts';
import { epochOf, eventsOf, type EventLine } from './audit-transcripts.ts';
import type { FaultLine } from './evidence.ts';
import type { Finding } from './finding.ts';

/** I11, I15, the fence and the fail points: what happened on the way. */
export function auditHistory({ faults, refused, logs }: AuditInput): Finding[] {
  const frozen = faults.some(({ kind }) => kind === 'stop');
  return [
    ...refused.map(({ marker, request, status, body }): Finding => ({
      invariant: 'I15',
      kind: 'refused',
      subject: marker,
      detail: `${request}: ${String(status)} ${body}`,
    })),
    ...faults.flatMap((fault) => auditFault(fault)),
    ...(frozen && fencedWrites({ logs }) === 0
      ? [{ invariant: 'fence', kind: 'no fence', subject: 'workers', detail: 'none was frozen with a turn in its hands' } as const]
      : []),
  ];
}

function auditFault({ kind, target, exitCode, failpoint, reached }: FaultLine): Finding[] {
  if (kind === 'terminate' && exitCode !== 0)
    return [{ invariant: 'I11', kind: 'bad exit', subject: target, detail: `SIGTERM ended it with ${String(exitCode)}` }];
  if (kind === 'failpoint' && reached !== true)
    return [{ invariant: 'points', kind: 'not reached', subject: failpoint ?? '', detail: `${target} did not come by` }];
  return [];
}

/** Times that a worker found its session with another one: by Redis at a write to the stream, by the file system at a publication. */
export function fencedWrites({ logs }: Pick<AuditInput, 'logs'>): number {
  return logs.filter(({ message, text }) => message === 'lost the lease' || text.includes('"reason":"RevisionConflict"')).length;
}

/**
 * A lease that nobody renews runs out this long after its worker died, at the earliest: what was killed later cannot have held the turn
 * that is taken up again.
 */
const SOONEST_MS = 5900;

/**
 * Milliseconds from the kill -9 of a worker until another one took up a turn that it interrupted in mid-stream. Where several workers
 * were killed meanwhile, from the last one that can have held the turn.
 */
export function recoveryTimes({ faults, transcripts }: AuditInput): number[] {
  const kills = faults.filter(({ kind, target }) => kind === 'kill' && target.startsWith('worker')).map(({ atMs }) => atMs);
  return transcripts
    .filter(({ reader }) => reader === 'asker')
    .flatMap((transcript) => {
      const events = eventsOf(transcript);
      return events.flatMap((event, at) => recoveryAt(event, events[at - 1], kills));
    })
    .toSorted((left, right) => left - right);
}

/** A new epoch is a new lease, and says when it was taken. What a client sees of it also depends on its gateway. */
function recoveryAt(event: EventLine, before: EventLine | undefined, kills: readonly number[]): number[] {
  if (before === undefined || before.event === 'session' || epochOf(event.id) === epochOf(before.id)) return [];
  const takenAtMs = epochOf(event.id);
  const kill = kills.findLast((atMs) => atMs > before.atMs - 100 && atMs < takenAtMs - SOONEST_MS);
  return kill === undefined ? [] : [takenAtMs - kill];
}
