import type { TurnRecord } from '@concierge/contract';
import type { AuditInput } from './audit-input.ts';
import type { FaultLine } from './evidence.ts';
import type { Finding } from './finding.ts';

/** A turn is ended by rule when so many of its workers died. */
const STARTS = 3;
const endsProcesses: ReadonlySet<FaultLine['kind']> = new Set(['kill', 'stop', 'failpoint', 'hang']);

/**
 * The model of a run never fails, so no turn may: only one whose workers died three times is ended by rule. I10, I22: a
 * poison turn is ended after exactly three starts, and nothing beside it is.
 */
export function auditFailures({ acknowledged, sessions, ledger, faults }: AuditInput): Finding[] {
  const kinds = new Map(acknowledged.map(({ turnId, kind, marker }) => [turnId, { kind, marker }]));
  const hasPoison = acknowledged.some(({ kind }) => kind === 'poison');
  const deaths = faults.filter(({ kind }) => endsProcesses.has(kind)).length;
  const starts = Map.groupBy(
    ledger.filter(({ event }) => event === 'start'),
    ({ marker }) => marker,
  );
  return sessions
    .flatMap(({ turns }) => turns)
    .flatMap((record): Finding[] => {
      const { kind, marker = '' } = kinds.get(record.id) ?? {};
      if (kind === 'poison') return auditPoison(record, starts.get(marker)?.length ?? 0);
      const code = record.error?.code;
      if (code === undefined) return [];
      const finding = { subject: record.id, detail: `${marker}: ended in ${code}` };
      if (code === 'turn_crashed') {
        if (hasPoison) return [{ ...finding, invariant: 'I22', kind: 'innocent failed' }];
        if (deaths >= STARTS) return [];
      }
      return [{ ...finding, invariant: code === 'turn_timeout' ? 'I21' : 'I1', kind: 'failed' }];
    });
}

function auditPoison({ id, error }: TurnRecord, starts: number): Finding[] {
  if (error?.code === 'turn_crashed' && starts === STARTS) return [];
  const detail = `ended in ${error?.code ?? 'done'} after ${String(starts)} starts`;
  return [{ invariant: 'I10', kind: 'other starts', subject: id, detail }];
}
