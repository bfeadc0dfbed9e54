import type { AuditInput } from './audit-input.ts';
import type { Finding } from './finding.ts';

/** Time from the request of the client to the model call: percentiles in ms. */
export interface Waits {
  readonly turns: number;
  readonly p50: number;
  readonly p99: number;
}

export interface FloodWaits {
  /** Waits of the quiet tenants before the flood, and beside it. */
  readonly alone: Waits;
  readonly beside: Waits;
  /** Waits of the tenant that floods. */
  readonly loud: Waits;
}

/** A flood measures waiting only when it makes turns wait: its own turns have to wait for so long. */
const FLOODED_MS = 3000;
/** Very generous: in a queue that knows no tenants both wait for the same time. */
const SHARE = 3;

export function floodWaits(input: AuditInput): FloodWaits {
  const { asked, flooded } = input;
  const askedIn = (phase: string): readonly Asked[] => asked.filter(({ marker }) => marker.startsWith(`mk-${phase}-`));
  return {
    alone: measureWaits(input, askedIn('alone')),
    beside: measureWaits(input, askedIn('beside')),
    loud: measureWaits(input, flooded),
  };
}

/** Returns the waits of all questions of a run. */
export function startTimes(input: AuditInput): Pick<Waits, 'p50' | 'p99'> {
  const { p50, p99 } = measureWaits(input, input.asked);
  return { p50, p99 };
}

interface Asked {
  readonly marker: string;
  readonly atMs: number;
}

function measureWaits({ ledger }: Pick<AuditInput, 'ledger'>, lines: readonly Asked[]): Waits {
  const started = new Map<string, number>();
  for (const { event, marker, atMs } of ledger) if (event === 'start' && !started.has(marker)) started.set(marker, atMs);
  const waits = lines
    .flatMap(({ marker, atMs }) => {
      const startMs = started.get(marker);
      return startMs === undefined ? [] : [Math.max(0, startMs - atMs)];
    })
    .toSorted((left, right) => left - right);
  const percentile = (share: number): number => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))] ?? 0;
  return { turns: waits.length, p50: percentile(0.5), p99: percentile(0.99) };
}

/** I1 and I13 of a flood: all of it is answered, and those beside it do not stand in its queue. */
export function auditFlood(input: AuditInput): Finding[] {
  const { flooded, ledger } = input;
  if (flooded.length === 0) return [];
  const known = new Set(ledger.map(({ marker }) => marker));
  const { beside, loud } = floodWaits(input);
  const isBehind = loud.p50 > FLOODED_MS && beside.p50 > loud.p50 / SHARE;
  return [
    ...flooded
      .filter(({ marker }) => !known.has(marker))
      .map(({ marker }): Finding => ({ invariant: 'I1', kind: 'lost', subject: marker, detail: 'accepted, and no model was asked' })),
    ...(isBehind
      ? [
          {
            invariant: 'I13',
            kind: 'behind',
            subject: 'quiet tenants',
            detail: `p50 ${String(beside.p50)} ms, the loud one ${String(loud.p50)} ms`,
          } as const,
        ]
      : []),
  ];
}

export function renderWaits({ alone, beside, loud }: FloodWaits): string {
  const row = (name: string, { turns, p50, p99 }: Waits): string =>
    `${name.padEnd(22)} ${String(turns).padStart(5)} turns, wait p50 ${String(p50).padStart(6)} ms, p99 ${String(p99).padStart(6)} ms`;
  return [
    row('quiet tenants, alone', alone),
    row('beside the flood', beside),
    row('the flood itself', loud),
    `more than alone: p50 ${String(beside.p50 - alone.p50)} ms, p99 ${String(beside.p99 - alone.p99)} ms`,
  ].join('\n');
}
