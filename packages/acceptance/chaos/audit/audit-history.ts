import type { AuditInput } from './audit-input.ts';
import { startTimes } from './audit-waits.ts';
import type { FaultLine, LedgerLine } from './evidence.ts';
import type { Finding } from './finding.ts';

/** I11, I15, I21, I23, the fence and the fail points: what happened on the way. */
export function auditHistory(input: AuditInput): Finding[] {
  const { faults, refused, logs } = input;
  const frozen = faults.some(({ kind }) => kind === 'stop');
  return [
    ...refused.map(({ marker, request, status, body }): Finding => ({
      invariant: 'I15',
      kind: 'refused',
      subject: marker,
      detail: `${request}: ${String(status)} ${body}`,
    })),
    ...faults.flatMap((fault) => auditFault(fault)),
    ...auditRecovery(input),
    ...(frozen && fencedWrites({ logs }) === 0
      ? [{ invariant: 'fence', kind: 'no fence', subject: 'workers', detail: 'none was frozen with a turn in its hands' } as const]
      : []),
  ];
}

function auditFault({ kind, target, exitCode, failpoint, reached, endedAfterMs, refusals, wasReady }: FaultLine): Finding[] {
  if (kind === 'disk-full') return auditFullDisk({ refusals, wasReady });
  if (kind === 'hang' && endedAfterMs === null)
    return [{ invariant: 'I23', kind: 'hung', subject: target, detail: 'its event loop hung, and it went on to' }];
  if (kind === 'terminate' && exitCode !== 0)
    return [{ invariant: 'I11', kind: 'bad exit', subject: target, detail: `SIGTERM ended it with ${String(exitCode)}` }];
  if (kind === 'failpoint' && reached !== true)
    return [{ invariant: 'points', kind: 'not reached', subject: failpoint ?? '', detail: `${target} did not come by` }];
  return [];
}

function auditFullDisk({ refusals = 0, wasReady }: Pick<FaultLine, 'refusals' | 'wasReady'>): Finding[] {
  const found = { invariant: 'I14', subject: 'disk' } as const;
  return [
    ...(wasReady === true ? [{ ...found, kind: 'still ready', detail: 'the gateways were ready all the time' } as const] : []),
    ...(refusals === 0 ? [{ ...found, kind: 'no refusal', detail: 'nothing was put off while it was full' } as const] : []),
  ];
}

/**
 * Times that a worker found its session with another one: by Redis at a write to the stream, by the file system at a
 * publication.
 */
export function fencedWrites({ logs }: Pick<AuditInput, 'logs'>): number {
  return logs.filter(({ message, text }) => message === 'lost the lease' || isFenced(text)).length;
}

/** A line of a worker's log. */
export function isFenced(line: string): boolean {
  return line.includes('"msg":"lost the lease"') || line.includes('"reason":"RevisionConflict"');
}

/**
 * A lease that is not renewed runs out this long after its worker died, at the earliest: a worker that was killed later
 * cannot have held the turn that is taken over.
 */
const SOONEST_MS = 2900;

/**
 * Milliseconds from the kill -9 of a worker until another one took up a turn that it interrupted: as the model server
 * saw it, whose clock is shared with no other process. Where several workers were killed meanwhile, from the last one
 * that can have held the turn.
 */
export function recoveryTimes({ faults, ledger }: AuditInput): number[] {
  const kills = faults.filter(({ kind, target }) => kind === 'kill' && target.startsWith('worker'));
  return [...Map.groupBy(ledger, ({ marker }) => marker).values()]
    .flatMap((lines) => {
      const starts = lines.filter(({ event }) => event === 'start');
      const ends = new Map(lines.filter(({ event }) => event === 'end').map(({ number, atMs }) => [number, atMs]));
      return starts.flatMap((start, at) => recoveryAt(start, starts[at + 1], { kills, endedAtMs: ends.get(start.number) ?? Infinity }));
    })
    .toSorted((left, right) => left - right);
}

interface Interruption {
  readonly kills: readonly FaultLine[];
  readonly endedAtMs: number;
}

/** The model server may hear of the end of a connection before the rig has written down that it killed, or after. */
const SAME_MOMENT_MS = 1000;

function recoveryAt(start: LedgerLine, next: LedgerLine | undefined, { kills, endedAtMs }: Interruption): number[] {
  if (next === undefined) return [];
  const isInFlight = ({ atMs }: FaultLine): boolean => start.atMs <= atMs && atMs < endedAtMs + SAME_MOMENT_MS;
  const own = kills.find((kill) => kill.target === start.caller && isInFlight(kill));
  if (own === undefined || next.atMs <= own.atMs) return [];
  const last = kills.findLast(({ atMs }) => atMs > own.atMs && atMs < next.atMs - SOONEST_MS) ?? own;
  return [next.atMs - last.atMs];
}

/**
 * A lease takes 4 s and the reconciler looks every 2 s. A busy machine adds to it what it adds to other starts of
 * turns: not what it adds to the slowest ones.
 */
const SLOWEST_RECOVERY_MS = 25_000;

/** I21: while clocks are stepped, the turns of a dead worker are taken over as soon as ever. */
function auditRecovery(input: AuditInput): Finding[] {
  if (!input.faults.some(({ kind }) => kind === 'clock')) return [];
  const slowestMs = SLOWEST_RECOVERY_MS + startTimes(input).p50;
  return recoveryTimes(input)
    .filter((ms) => ms > slowestMs)
    .map((ms): Finding => ({ invariant: 'I21', kind: 'slow recovery', subject: 'workers', detail: `taken up after ${String(ms)} ms` }));
}
