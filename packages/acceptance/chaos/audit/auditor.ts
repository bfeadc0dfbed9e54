import { auditFailures } from './audit-failures.ts';
import { auditHistory, fencedWrites, recoveryTimes } from './audit-history.ts';
import { readAuditInput, type AuditInput, type AuditPlaces } from './audit-input.ts';
import { auditFiles, auditOrder, auditTurns } from './audit-sessions.ts';
import { auditTranscripts } from './audit-transcripts.ts';
import { auditFlood, floodWaits, renderWaits, startTimes, type FloodWaits } from './audit-waits.ts';
import { invariants, type Finding } from './finding.ts';
import type { SessionMessage } from '@concierge/contract';

export interface AuditReport {
  readonly findings: readonly Finding[];
  readonly turns: number;
  readonly sessions: number;
  readonly transcripts: number;
  /** Turns that ended in an error: one outcome, but not the wanted one. `code: how many`. */
  readonly failedTurns: Readonly<Record<string, number>>;
  readonly modelCalls: number;
  readonly effects: number;
  readonly fencedWrites: number;
  readonly resumedConnections: number;
  readonly resets: number;
  readonly faults: number;
  /** Time from a question to the model call, in ms, on the machine of this run, queues included. */
  readonly startMs: { readonly p50: number; readonly p99: number };
  /** Null without a flood. */
  readonly waits: FloodWaits | null;
  /** Time from kill -9 of a worker until another one took over a turn it ran, in ms. */
  readonly recoveryMs: { readonly samples: number; readonly p50: number; readonly max: number };
}

/** Reads what a run left behind, after the system has come to rest, and lists every broken promise. */
export async function audit(places: AuditPlaces): Promise<AuditReport> {
  const input = await readAuditInput(places);
  return reportOn(input);
}

export function reportOn(input: AuditInput): AuditReport {
  const recovery = recoveryTimes(input);
  const lines = input.transcripts.flatMap((transcript) => transcript.lines);
  return {
    findings: [auditTurns, auditOrder, auditFiles, auditEffects, auditTranscripts, auditFailures, auditHistory, auditFlood].flatMap(
      (look) => look(input),
    ),
    turns: input.acknowledged.length,
    sessions: input.sessions.length,
    transcripts: input.transcripts.length,
    failedTurns: failuresIn(input),
    modelCalls: input.ledger.filter(({ event }) => event === 'start').length,
    effects: input.effects.size,
    fencedWrites: fencedWrites(input),
    resumedConnections: lines.filter((line) => line.line === 'open' && line.lastEventId !== null).length,
    resets: lines.filter((line) => line.line === 'event' && line.event === 'text_reset').length,
    faults: input.faults.length,
    startMs: startTimes(input),
    waits: input.flooded.length === 0 ? null : floodWaits(input),
    recoveryMs: { samples: recovery.length, p50: recovery[Math.floor(recovery.length / 2)] ?? 0, max: recovery.at(-1) ?? 0 },
  };
}

function failuresIn({ sessions }: AuditInput): Record<string, number> {
  const codes = sessions.flatMap(({ turns }) => turns.flatMap(({ error }) => (error === null ? [] : [error.code])));
  return Object.fromEntries([...Map.groupBy(codes, (code) => code)].map(([code, some]) => [code, some.length]));
}

export function listFindings(report: AuditReport, kind: Finding['kind']): Finding[] {
  return report.findings.filter((finding) => finding.kind === kind);
}

/** One line per invariant, then what the run was made of. */
export function renderReport(report: AuditReport): string {
  const { findings, recoveryMs, failedTurns, waits, startMs, ...numbers } = report;
  const rows = Object.entries(invariants).map(([id, title]) => {
    const broken = findings.filter(({ invariant }) => invariant === id);
    return `${id.padEnd(7)} ${broken.length === 0 ? 'holds ' : 'BROKEN'} ${String(broken.length).padStart(5)}  ${title}`;
  });
  const facts = Object.entries(numbers).map(([name, value]) => `${name} ${String(value)}`);
  const recovery = `recovery after kill -9: ${String(recoveryMs.samples)} samples, p50 ${String(recoveryMs.p50)} ms, max ${String(recoveryMs.max)} ms`;
  const start = `first model call after the question: p50 ${String(startMs.p50)} ms, p99 ${String(startMs.p99)} ms`;
  return [
    ...rows,
    '',
    facts.join(', '),
    `failed turns: ${JSON.stringify(failedTurns)}`,
    recovery,
    start,
    ...(waits === null ? [] : [renderWaits(waits)]),
  ].join('\n');
}

/** The first findings of each kind, for a failing test or a log. */
export function renderFindings(findings: readonly Finding[], ofEach = 5): string {
  return [...Map.groupBy(findings, ({ kind }) => kind)]
    .flatMap(([kind, some]) => [
      `${kind}: ${String(some.length)}`,
      ...some.slice(0, ofEach).map(({ subject, detail }) => `  ${subject}  ${detail}`),
    ])
    .join('\n');
}

const sideEffects = new Set(['memory_write', 'write']);

/** I5: a marker was left behind once where the session records that the tool ran, and never twice. */
function auditEffects({ acknowledged, sessions, effects }: AuditInput): Finding[] {
  const results = Map.groupBy(
    sessions.flatMap(({ messages }) => messages),
    ({ turnId }) => turnId,
  );
  return acknowledged.flatMap(({ marker, turnId }): Finding[] => {
    const count = effects.get(marker) ?? 0;
    if (count > 1)
      return [{ invariant: 'I5', kind: 'effect doubled', subject: turnId, detail: `${marker} was written ${String(count)} times` }];
    const succeeded = (results.get(turnId) ?? []).some((message) => isSuccess(message));
    if (succeeded && count === 0)
      return [{ invariant: 'I5', kind: 'effect missing', subject: turnId, detail: `${marker}: the session says that it was written` }];
    return [];
  });
}

function isSuccess(message: SessionMessage): boolean {
  return message.role === 'tool' && sideEffects.has(message.name) && !message.isError;
}
