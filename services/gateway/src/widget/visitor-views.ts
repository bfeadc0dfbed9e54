import { createHash } from 'node:crypto';
import {
  DAY_MS,
  limits,
  type SessionMessage,
  type WidgetConversation,
  type WidgetMessage,
  type WidgetOpening,
  type WidgetTeam,
  encodeServerSentEvent,
  type TurnEvent,
  type VisitorEvent,
} from '@concierge/contract';
import { listOpenings } from '@concierge/tenant';
import { readRendered } from '@concierge/turn';
import type { VisitorCaller } from './widget-caller.ts';
import type { StreamEncoding } from '../sse/event-stream.ts';

/**
 * A conversation as its visitor sees it, and a tag that changes whenever that does. `null`: it still has the tag that
 * is known.
 */
export async function viewConversation(
  { scope, sessionId }: Pick<VisitorCaller, 'scope' | 'sessionId'>,
  knownTag: string | undefined,
): Promise<{ readonly tag: string; readonly conversation: WidgetConversation | null }> {
  const [session, withPerson] = await Promise.all([scope.sessions.load(sessionId), scope.handoffs.isPaused(sessionId)]);
  // Not the bare revision: after a conversation was removed, another one counts from 1 again.
  const tag = buildTag([session?.createdAt ?? '', String(session?.revision ?? 0), String(withPerson)]);
  if (tag === knownTag) return { tag, conversation: null };
  const found = session === undefined ? undefined : await scope.sessions.conversation(sessionId);
  const messages = toWidgetMessages(found?.messages ?? []).slice(-limits.widgetMessagesShown);
  const askAgainSeconds = withPerson ? limits.widgetAskWithPersonSeconds : limits.widgetAskSeconds;
  return { tag, conversation: { messages, withPerson, askAgainSeconds } };
}

/**
 * The messages, without tool calls and their results. The paragraphs that an agent wrote between its tools in one turn
 * are one message.
 */
function toWidgetMessages(messages: readonly SessionMessage[]): WidgetMessage[] {
  const shown: WidgetMessage[] = [];
  for (const message of messages) {
    if (message.role === 'tool' || message.text === '') continue;
    const { id, turnId, text, at } = message;
    const files = message.role === 'user' ? (message.attachments ?? []).map(({ name }) => name) : [];
    const from = message.role === 'user' ? 'visitor' : message.by === undefined ? 'agent' : 'person';
    const last = shown.at(-1);
    if (from === 'agent' && last?.from === 'agent' && last.turnId === turnId)
      shown[shown.length - 1] = { ...last, text: `${last.text}\n\n${text}` };
    else shown.push({ id, turnId, from, text, at, files });
  }
  return shown;
}

/** Moments, not hours: a page needs no zone, and learns no more than when to come back. */
export async function viewOpenings(scope: VisitorCaller['scope'], { hours }: WidgetTeam): Promise<WidgetOpening[] | null> {
  if (hours.length === 0) return null;
  const { timezone = 'UTC' } = await scope.settings();
  const fromMs = Date.now();
  const openings = listOpenings(hours, { zone: timezone, fromMs, toMs: fromMs + limits.widgetOpeningsDays * DAY_MS });
  return openings.map((one) => ({ from: new Date(one.fromMs).toISOString(), until: new Date(one.untilMs).toISOString() }));
}

function buildTag(parts: readonly string[]): string {
  return `"${createHash('sha256').update(parts.join('\n')).digest('base64url').slice(0, 22)}"`;
}

/**
 * Reduces a turn's event to what a visitor may know: the text, that a tool runs, and how the turn ended. An agent's
 * tools, their arguments and their results are for the owner alone.
 */
function toVisitorEvent({ type, data }: TurnEvent): VisitorEvent | null {
  switch (type) {
    case 'session': {
      return { type, data: { turnId: data.turnId } };
    }
    case 'text_delta': {
      return { type, data: { delta: data.delta } };
    }
    case 'text_reset': {
      return { type, data: { all: data.reason === 'stream_lost' } };
    }
    case 'tool_result': {
      return { type: 'step', data: {} };
    }
    case 'done': {
      return { type, data: { finishReason: data.finishReason } };
    }
    case 'error': {
      return { type, data: { code: data.code, message: data.message, retryable: data.retryable } };
    }
    case 'tool_call_start':
    case 'tool_call_progress':
    case 'tool_call_end': {
      return null;
    }
  }
}

/** Rendered events in, a visitor's out. Each keeps its id, so that a stream resumes after any of them. */
export const visitorEncoding: StreamEncoding = {
  encode: (sse) =>
    sse
      .split('\n\n')
      .map((block) => encodeBlock(block))
      .join(''),
  cutOff: () => '',
};

function encodeBlock(block: string): string {
  const [event] = readRendered(block);
  const shown = event === undefined ? null : toVisitorEvent(event);
  if (shown === null) return '';
  return encodeServerSentEvent(shown.type, JSON.stringify(shown.data), /\nid: (?<id>.*)$/u.exec(block)?.groups?.['id'] ?? '');
}
