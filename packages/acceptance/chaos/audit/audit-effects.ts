import type { SessionMessage } from '@concierge/contract';
import type { AuditInput } from './audit-input.ts';
import type { Finding } from './finding.ts';

const sideEffects = new Set(['memory_write', 'write']);

/** I5: a marker was left behind once where the session records that the tool ran, and never twice. */
export function auditEffects({ acknowledged, sessions, effects }: AuditInput): Finding[] {
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
