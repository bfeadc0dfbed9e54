import type { JsonObject, TurnEvent, VisitorEvent } from '@concierge/contract';

export interface TextPart {
  readonly kind: 'text';
  readonly text: string;
}

export interface ToolPart {
  readonly kind: 'tool';
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
  readonly status: 'running' | 'ok' | 'error';
  /** Null while it runs, and for calls whose duration is not known (any more). */
  readonly durationMs: number | null;
  readonly output: string | null;
  /** Its output while it runs. */
  readonly progress: string;
  readonly truncated: boolean;
}

export type ReplyPart = TextPart | ToolPart;

/** What came back of one turn so far, in order. Immutable. */
export interface Reply {
  readonly parts: readonly ReplyPart[];
  /** Parts before this index are settled: a `text_reset` leaves them alone. */
  readonly settled: number;
}

/**
 * The reply after one more event. A tool call that comes twice changes nothing; text has no identity, so its reader
 * must leave out what came before (`streamEvents` does).
 */
export function extendReply(reply: Reply, event: TurnEvent | VisitorEvent): Reply {
  const { parts, settled } = reply;
  switch (event.type) {
    case 'session': {
      return reply;
    }
    case 'text_delta': {
      return { parts: appendText(reply, event.data.delta), settled };
    }
    case 'tool_call_start':
    case 'tool_call_progress':
    case 'tool_call_end': {
      return { parts: changeCalls(parts, event), settled };
    }
    case 'tool_result': {
      return { parts: changeCalls(parts, event), settled: parts.length };
    }
    case 'step': {
      return { parts, settled: parts.length };
    }
    case 'text_reset': {
      return withoutVoid(reply, event.data);
    }
    case 'done':
    case 'error': {
      return { parts: parts.map(closeCall), settled };
    }
  }
}

/** The agent's words, without its tool calls: a paragraph for each run of words between them. */
export function replyText({ parts }: Pick<Reply, 'parts'>): string {
  return parts.flatMap((part) => (part.kind === 'text' && part.text !== '' ? [part.text] : [])).join('\n\n');
}

/** The words of one turn, for a reader that shows nothing else. */
export class ReplyText {
  #reply: Reply = { parts: [], settled: 0 };

  /** Everything so far, without what a `text_reset` made void. */
  get text(): string {
    return replyText(this.#reply);
  }

  add(event: TurnEvent | VisitorEvent): void {
    this.#reply = extendReply(this.#reply, event);
  }
}

function appendText({ parts, settled }: Reply, delta: string): readonly ReplyPart[] {
  const last = parts.at(-1);
  if (last?.kind !== 'text' || parts.length <= settled) return [...parts, { kind: 'text', text: delta }];
  return [...parts.slice(0, -1), { kind: 'text', text: last.text + delta }];
}

type CallEvent = Extract<TurnEvent, { type: `tool_${string}` }>;

function changeCalls(parts: readonly ReplyPart[], event: CallEvent): readonly ReplyPart[] {
  const { id, name } = event.data;
  const isKnown = parts.some((part) => part.kind === 'tool' && part.id === id);
  if (event.type === 'tool_call_start' && !isKnown) {
    const call = { status: 'running', durationMs: null, output: null, progress: '', truncated: false } as const;
    return [...parts, { kind: 'tool', id, name, input: event.data.input, ...call }];
  }
  return parts.map((part) => (part.kind === 'tool' && part.id === id ? changeCall(part, event) : part));
}

function changeCall(call: ToolPart, event: CallEvent): ToolPart {
  if (event.type === 'tool_call_start') return call;
  if (event.type === 'tool_call_progress') return { ...call, progress: call.progress + event.data.delta };
  const status = event.data.isError ? 'error' : 'ok';
  if (event.type === 'tool_call_end') return { ...call, status, durationMs: event.data.durationMs };
  return { ...call, status, output: event.data.output, truncated: event.data.truncated === true };
}

/** A call that is still open when the turn ends (it was stopped) will not get a result. */
function closeCall(part: ReplyPart): ReplyPart {
  return part.kind === 'tool' && part.status === 'running' ? { ...part, status: 'error' } : part;
}

/**
 * A turn whose stream was lost is replayed from its start; any other reset leaves what came before the last tool
 * result.
 */
function withoutVoid({ parts, settled }: Reply, reset: Extract<TurnEvent | VisitorEvent, { type: 'text_reset' }>['data']): Reply {
  const isAll = 'all' in reset ? reset.all : reset.reason === 'stream_lost';
  if (isAll) return { parts: [], settled: 0 };
  return { parts: parts.filter((part, index) => index < settled || part.kind === 'tool'), settled };
}
