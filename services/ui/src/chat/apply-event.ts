import type { TurnEvent } from '@concierge/contract';
import type { ChatTurn, ReplyPart, ToolPart } from './chat-turn.ts';

type EventData<Type extends TurnEvent['type']> = Extract<TurnEvent, { type: Type }>['data'];

/**
 * The turn after one more event. A tool call or an end that comes twice changes nothing; text has no identity, so its
 * reader must leave out what came before (`ConciergeClient` does).
 */
export function applyEvent(turn: ChatTurn, event: TurnEvent): ChatTurn {
  switch (event.type) {
    case 'session': {
      return accepted(turn, event.data.turnId);
    }
    case 'text_delta': {
      return running(turn, appendText(turn, event.data.delta));
    }
    case 'tool_call_start': {
      return running(turn, startTool(turn, event.data));
    }
    case 'tool_call_progress': {
      return running(turn, extendProgress(turn, event.data));
    }
    case 'tool_call_end': {
      const { id, durationMs, isError } = event.data;
      return running(turn, changeTool(turn, id, { durationMs, status: isError ? 'error' : 'ok' }));
    }
    case 'tool_result': {
      const { id, output, truncated, isError } = event.data;
      const parts = changeTool(turn, id, { output, truncated: truncated === true, status: isError ? 'error' : 'ok' });
      return { ...running(turn, parts), settled: parts.length };
    }
    case 'text_reset': {
      return withoutVoid(turn, event.data.reason);
    }
    case 'done': {
      const { inputTokens, outputTokens, finishReason } = event.data;
      return ended(turn, { at: 'done', finishReason, usage: { inputTokens, outputTokens } });
    }
    case 'error': {
      const { code, message, retryable } = event.data;
      return ended(turn, { at: 'failed', failure: { code, message, retryable } });
    }
  }
}

function accepted(turn: ChatTurn, turnId: string): ChatTurn {
  return { ...turn, turnId, state: turn.state.at === 'sending' ? { at: 'waiting' } : turn.state };
}

function running(turn: ChatTurn, parts: readonly ReplyPart[]): ChatTurn {
  return { ...turn, parts, state: { at: 'running' } };
}

/** A call that is still open when the turn ends (it was stopped) will not get a result. */
function ended(turn: ChatTurn, state: ChatTurn['state']): ChatTurn {
  const parts = turn.parts.map((part): ReplyPart =>
    part.kind === 'tool' && part.status === 'running' ? { ...part, status: 'error' } : part,
  );
  return { ...turn, parts, state, link: 'live', stopping: false };
}

function appendText({ parts, settled }: ChatTurn, delta: string): readonly ReplyPart[] {
  const last = parts.at(-1);
  if (last?.kind !== 'text' || parts.length <= settled) return [...parts, { kind: 'text', text: delta }];
  return [...parts.slice(0, -1), { kind: 'text', text: last.text + delta }];
}

function startTool({ parts }: ChatTurn, { id, name, input }: EventData<'tool_call_start'>): readonly ReplyPart[] {
  if (parts.some((part) => part.kind === 'tool' && part.id === id)) return parts;
  return [...parts, { kind: 'tool', id, name, input, status: 'running', durationMs: null, output: null, progress: '', truncated: false }];
}

function extendProgress({ parts }: ChatTurn, { id, delta }: EventData<'tool_call_progress'>): readonly ReplyPart[] {
  return parts.map((part) => (part.kind === 'tool' && part.id === id ? { ...part, progress: part.progress + delta } : part));
}

function changeTool({ parts }: ChatTurn, id: string, change: Partial<ToolPart>): readonly ReplyPart[] {
  return parts.map((part) => (part.kind === 'tool' && part.id === id ? { ...part, ...change } : part));
}

/**
 * A turn whose stream was lost is replayed from its start; any other reset leaves what came before the last tool
 * result.
 */
function withoutVoid(turn: ChatTurn, reason: EventData<'text_reset'>['reason']): ChatTurn {
  if (reason === 'stream_lost') return { ...running(turn, []), settled: 0 };
  const { parts, settled } = turn;
  return running(
    turn,
    parts.filter((part, index) => index < settled || part.kind === 'tool'),
  );
}
