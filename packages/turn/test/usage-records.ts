import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcceptedTurn, ModelUsage, Session, TurnRecord } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';

/** Whose records, and the time that they name. */
interface At {
  readonly scope: TenantScope;
  readonly nowMs: number;
}

export function usage(tokens: number, costUsd: number | null = null): ModelUsage {
  return { model: 'test/one', calls: 1, inputTokens: tokens - 1, outputTokens: 1, cachedInputTokens: 0, costUsd };
}

/** What a worker leaves of an ended turn. */
export async function recordEnd({ scope, nowMs }: At, turn: AcceptedTurn, models: readonly ModelUsage[]): Promise<void> {
  const at = new Date(nowMs).toISOString();
  const record: TurnRecord = {
    id: turn.turnId,
    status: 'done',
    origin: turn.origin,
    acceptedAt: at,
    startedAt: at,
    firstTextAt: null,
    endedAt: at,
    attempts: 1,
    usage: { inputTokens: 0, outputTokens: 0 },
    models: [...models],
    finishReason: 'stop',
    error: null,
    steps: [],
    requestHash: turn.requestHash,
    keyId: null,
  };
  const session: Session = {
    version: 1,
    id: turn.sessionId,
    agent: 'admin',
    channel: 'web',
    sender: null,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title: 't',
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [record],
    contextTokens: null,
  };
  await scope.sessions.publish(session);
  await scope.index.putSession(session);
}

/** As `appendJournal` leaves it. */
export async function journalUsage({ scope, nowMs }: At, { turnId }: AcceptedTurn, used: ModelUsage): Promise<void> {
  const at = new Date(nowMs).toISOString();
  const message = { id: `${turnId}.1`, turnId, at, role: 'assistant', text: 'so far' };
  const step = {
    kind: 'assistant',
    message,
    finishReason: 'tool_calls',
    usage: used,
    startedAtMs: nowMs,
    firstTextAtMs: null,
    durationMs: 1,
  };
  const folder = join(scope.root, 'inbox');
  await mkdir(folder, { recursive: true });
  await appendFile(join(folder, `${turnId}.journal.jsonl`), `${JSON.stringify(step)}\n`);
}
