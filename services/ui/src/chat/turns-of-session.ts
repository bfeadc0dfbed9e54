import { JsonObject, type SessionView, type TurnView } from '@concierge/contract';
import { newTurn, type ChatTurn, type ReplyPart, type TurnState } from './chat-turn.ts';

type Message = SessionView['messages'][number];
type AssistantMessage = Extract<Message, { role: 'assistant' }>;
type ToolMessage = Extract<Message, { role: 'tool' }>;

/**
 * A stored conversation as turns, oldest first. `known` adds how turns ended and what they used, as far as the service
 * still lists them.
 */
export function turnsOfSession(session: Pick<SessionView, 'messages'>, known: readonly TurnView[] = []): ChatTurn[] {
  const views = new Map(known.map((view) => [view.id, view]));
  const turns = new Map<string, ChatTurn>();
  for (const message of session.messages) {
    const before = turns.get(message.turnId) ?? startOf(message.turnId, views.get(message.turnId));
    turns.set(message.turnId, addMessage(before, message));
  }
  return [...turns.values()];
}

function startOf(turnId: string, view: TurnView | undefined): ChatTurn {
  return newTurn({ key: turnId, turnId, state: view === undefined ? { at: 'done', finishReason: null, usage: null } : stateOf(view) });
}

/** A turn as the service lists it. */
export function stateOf(view: TurnView): TurnState {
  switch (view.status) {
    case 'waiting':
    case 'running': {
      return { at: view.status };
    }
    case 'done':
    case 'cancelled': {
      return { at: 'done', finishReason: view.finishReason, usage: view.usage };
    }
    case 'failed': {
      const { code, message } = view.error ?? { code: 'internal_error', message: 'The turn failed.' };
      return { at: 'failed', failure: { code, message, retryable: true } };
    }
  }
}

function addMessage(turn: ChatTurn, message: Message): ChatTurn {
  switch (message.role) {
    case 'user': {
      // Later ones within a turn are what the user wrote in between; shown as one question.
      const text = turn.question === null ? message.text : `${turn.question.text}\n\n${message.text}`;
      const attachments = [...(turn.question?.attachments ?? []), ...(message.attachments ?? [])];
      return { ...turn, question: { text, attachments, at: turn.question?.at ?? message.at } };
    }
    case 'assistant': {
      const parts = [...turn.parts, ...partsOf(message)];
      return {
        ...turn,
        isFromStaff: message.by !== undefined,
        parts,
        settled: parts.length,
        state: message.partial === true ? cut(turn.state) : turn.state,
      };
    }
    case 'tool': {
      return { ...turn, parts: turn.parts.map((part) => withResult(part, message)) };
    }
  }
}

function cut(state: TurnState): TurnState {
  return state.at === 'done' && state.finishReason === null ? { ...state, finishReason: 'cancelled' } : state;
}

function partsOf({ text, toolCalls = [] }: AssistantMessage): ReplyPart[] {
  const said: ReplyPart[] = text === '' ? [] : [{ kind: 'text', text }];
  const called = toolCalls.map(({ id, name, arguments: written }): ReplyPart => ({
    kind: 'tool',
    id,
    name,
    input: inputOf(written),
    // A stored call without a stored result was cut.
    status: 'error',
    durationMs: null,
    output: null,
    progress: '',
    truncated: false,
  }));
  return [...said, ...called];
}

/** The arguments as the model wrote them may be no JSON at all. */
function inputOf(written: string): JsonObject {
  try {
    return JsonObject.parse(JSON.parse(written));
  } catch {
    return written.trim() === '' ? {} : { arguments: written };
  }
}

function withResult(part: ReplyPart, { callId, output, isError }: ToolMessage): ReplyPart {
  if (part.kind !== 'tool' || part.id !== callId) return part;
  return { ...part, output, status: isError ? 'error' : 'ok' };
}
