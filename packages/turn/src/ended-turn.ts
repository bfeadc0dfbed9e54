import { errorCodes, type Session, type SessionMessage, type TurnEvent, type TurnRecord } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import type { StreamEntry } from './stream-entry.ts';

/**
 * The stream of an ended turn, told again from its session file: for readers who come after the stream expired or Redis was
 * emptied. Ids follow the end's time, so they are above every id that a reader may hold.
 * @returns null when no session contains the turn
 */
export async function retellTurn(scope: TenantScope, turnId: string, resumed: boolean): Promise<StreamEntry[] | null> {
  const indexed = await scope.index.findTurn(turnId);
  if (indexed === undefined) return null;
  const session = await scope.sessions.view(indexed.sessionId);
  const messages = session?.messages.filter((message) => message.turnId === turnId) ?? [];
  const events: TurnEvent[] = [
    ...(resumed ? [{ type: 'text_reset', data: { reason: 'restarted' } } as const] : []),
    ...messages.flatMap((message) => eventsOf(message)),
    endOf(indexed.record),
  ];
  const epoch = String(Date.parse(indexed.record.endedAt));
  const told = events.map((event, index) => ({ id: `${epoch}-${String(index + 1)}`, type: event.type, json: JSON.stringify(event.data) }));
  if (resumed) return told;
  return [{ id: '0-1', type: 'session', json: JSON.stringify({ contact_id: indexed.sessionId, turnId }) }, ...told];
}

type Told = Session['messages'][number] | Omit<Extract<SessionMessage, { role: 'user' }>, 'sent'>;

function eventsOf(message: Told): TurnEvent[] {
  switch (message.role) {
    case 'user': {
      return [];
    }
    case 'assistant': {
      const text: TurnEvent[] = message.text === '' ? [] : [{ type: 'text_delta', data: { delta: message.text } }];
      const calls = (message.toolCalls ?? []).map((call): TurnEvent => ({
        type: 'tool_call_start',
        data: { id: call.id, name: call.name, input: inputOf(call.arguments) },
      }));
      return [...text, ...calls];
    }
    case 'tool': {
      const { callId: id, name, isError, output } = message;
      return [
        { type: 'tool_call_end', data: { id, name, durationMs: 0, isError } },
        { type: 'tool_result', data: { id, name, output, isError } },
      ];
    }
  }
}

function inputOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

/** The terminal event that a turn's record stands for. */
export function endOf(record: TurnRecord): Extract<TurnEvent, { type: 'done' | 'error' }> {
  if (record.error !== null) {
    return { type: 'error', data: { ...record.error, retryable: errorCodes[record.error.code].retryable, turnId: record.id } };
  }
  return { type: 'done', data: { ...record.usage, finishReason: record.finishReason ?? 'stop' } };
}
