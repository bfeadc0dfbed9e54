import type { CompletionToolCall, CompletionUsage } from '@concierge/model/demo';

export interface SayOptions {
  /** Deltas the text is cut into; 1 when not given. */
  readonly chunks?: number;
  /** Delay between deltas; without it they leave in one piece. */
  readonly delayMs?: number;
}

export interface ScriptedCall {
  readonly name: string;
  /** An object is sent as JSON, a string as it is. */
  readonly args: Readonly<Record<string, unknown>> | string;
  readonly id?: string;
}

/**
 * What the scripted model does next. A reply without an end of its own ends with `stop`, or `tool_calls` after calls.
 */
export type ScriptedAction =
  | { readonly do: 'say'; readonly text: string; readonly options: SayOptions }
  | { readonly do: 'call'; readonly calls: readonly CompletionToolCall[] }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'until'; readonly opened: Promise<void> }
  | { readonly do: 'raw'; readonly text: string }
  | { readonly do: 'usage'; readonly usage: CompletionUsage | null }
  | { readonly do: 'finish'; readonly reason: string }
  | { readonly do: 'hang' }
  | { readonly do: 'cut' }
  | { readonly do: 'status'; readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: unknown };

/** One reply. */
export type Script = readonly ScriptedAction[];

export function say(text: string, options: SayOptions = {}): ScriptedAction {
  return { do: 'say', text, options };
}

let callsMade = 0;

export function callTools(calls: readonly ScriptedCall[]): ScriptedAction {
  return {
    do: 'call',
    calls: calls.map(({ name, args, id }) => ({
      id: id ?? nextCallId(),
      name,
      arguments: typeof args === 'string' ? args : JSON.stringify(args),
    })),
  };
}

function nextCallId(): string {
  callsMade += 1;
  return `call_${String(process.pid)}_${String(callsMade)}`;
}

/** Delays the next action; as the first action it delays the first byte. */
export function wait(ms: number): ScriptedAction {
  return { do: 'wait', ms };
}

/** Sends what came before; the next action waits for a gate of the test. */
export function until(opened: Promise<void>): ScriptedAction {
  return { do: 'until', opened };
}

/** Sends what came before and then nothing, until the client goes. */
export function hang(): ScriptedAction {
  return { do: 'hang' };
}

/** Sends what came before and cuts the connection. */
export function cut(): ScriptedAction {
  return { do: 'cut' };
}

/** Sends the first of the deltas, then cuts the connection. */
export function cutMidStream(text: string, afterChunks: number): Script {
  const pieces = splitText(text, afterChunks + 1).slice(0, afterChunks);
  return [say(pieces.join(''), { chunks: afterChunks }), cut()];
}

/** An event that is no JSON. */
export function malformedChunk(): ScriptedAction {
  return raw('data: {"choices":[{"delta":{"content":"half a\n\n');
}

/** Bytes of the stream, as they are. */
export function raw(text: string): ScriptedAction {
  return { do: 'raw', text };
}

/** An answer that is no stream; `body` an object, or text. */
export function status(code: number, answer: { headers?: Readonly<Record<string, string>>; body?: unknown } = {}): ScriptedAction {
  const body = answer.body ?? { error: { message: `scripted status ${String(code)}`, type: 'scripted', code: null, param: null } };
  return { do: 'status', status: code, headers: answer.headers ?? {}, body };
}

export function finish(reason: 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call' | (string & {})): ScriptedAction {
  return { do: 'finish', reason };
}

/** The figures the provider reports; null: it reports none. */
export function usage(figures: CompletionUsage | null): ScriptedAction {
  return { do: 'usage', usage: figures };
}

/** `text` in `count` pieces that differ by at most one code point in length; fewer when it has fewer. */
export function splitText(text: string, count: number): string[] {
  const points = Array.from(text);
  const pieces = Math.max(1, Math.min(count, points.length));
  return Array.from({ length: pieces }, (_, piece) =>
    points.slice(Math.floor((piece * points.length) / pieces), Math.floor(((piece + 1) * points.length) / pieces)).join(''),
  );
}
