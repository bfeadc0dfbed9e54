import type { AssistantMessage, Session, SessionMessage, TurnRecord } from '@concierge/contract';
import type { AuditInput, SessionFile } from './audit-input.ts';
import type { EventLine } from './audit-transcripts.ts';
import type { Acknowledged, ReaderName, Transcript } from './evidence.ts';
import { toLoadMessage } from '../load/request.ts';

const at = '2026-11-20T12:00:00.000Z';
const tenantId = 'chaos-0';
const sessionId = '0123456789abcdef0123456789abcdef';

/** A turn of the fixture: the first only answers, the second keeps a note before it answers. */
export const turnIds = ['t_00000000000000000000000000000001', 't_00000000000000000000000000000002'] as const;
const markers = ['mk-c00-000-aaaa', 'mk-c00-001-bbbb'] as const;
const replies = ['one two', 'looks first. three four'] as const;

/**
 * What a run of two turns leaves behind when every promise was kept: the ground on which each test breaks one thing.
 */
export function cleanRun(): AuditInput {
  return {
    asked: markers.map((marker) => ({ marker, conversation: 'c00', atMs: 900 })),
    flooded: [],
    acknowledged: [acknowledged(0), acknowledged(1)],
    refused: [],
    faults: [{ atMs: 5000, kind: 'terminate', target: 'worker-0', exitCode: 0 }],
    ledger: [],
    transcripts: [transcript(0, 'asker'), transcript(1, 'asker'), transcript(1, 'rereader')],
    sessions: [sessionFile([...buildMessages(0), ...buildMessages(1)], [buildRecord(0), buildRecord(1)])],
    leftInInboxes: [],
    effects: new Map([[markers[1], 1]]),
    logs: [],
  };
}

function acknowledged(number: 0 | 1): Acknowledged {
  return {
    marker: markers[number],
    kind: number === 0 ? 'say' : 'note',
    tenantId,
    conversation: 'c00',
    number,
    turnId: turnIds[number],
    sessionId,
    atMs: 1000 + number,
    posts: 1,
  };
}

export function buildMessages(number: 0 | 1): SessionMessage[] {
  const turnId = turnIds[number];
  const text = toLoadMessage({ marker: markers[number], kind: 'say', chunks: 2, delayMs: 0 });
  const prompt: SessionMessage = { id: `${turnId}.0`, turnId, at, role: 'user', text, sent: text };
  if (number === 0) return [prompt, assistant(turnId, 1, replies[0])];
  const call: AssistantMessage = {
    ...assistant(turnId, 1, 'looks first. '),
    toolCalls: [{ id: 'call_1', name: 'memory_write', arguments: '{}' }],
  };
  const result: SessionMessage = {
    id: `${turnId}.1.1`,
    turnId,
    at,
    role: 'tool',
    callId: 'call_1',
    name: 'memory_write',
    output: 'Kept.',
    isError: false,
  };
  return [prompt, call, result, assistant(turnId, 2, 'three four')];
}

function assistant(turnId: string, round: number, text: string): AssistantMessage {
  return { id: `${turnId}.${String(round)}`, turnId, at, role: 'assistant', text };
}

export function buildRecord(number: 0 | 1): TurnRecord {
  const nothing = { usage: { inputTokens: 0, outputTokens: 0 }, models: [], error: null, steps: [], requestHash: '', keyId: null };
  return {
    id: turnIds[number],
    status: 'done',
    origin: 'api',
    acceptedAt: at,
    startedAt: at,
    firstTextAt: at,
    endedAt: at,
    attempts: 1,
    finishReason: 'stop',
    ...nothing,
  };
}

/** A session file with its revisions, the last of which is the file itself. */
export function sessionFile(messages: SessionMessage[], turns: TurnRecord[]): SessionFile {
  const session = (revision: number, recorded: TurnRecord[]): Session => ({
    version: 1,
    id: sessionId,
    agent: 'cs',
    channel: 'web',
    sender: 'contact',
    revision,
    createdAt: at,
    updatedAt: at,
    title: '',
    messageCount: messages.length,
    summary: null,
    messages,
    turns: recorded,
    contextTokens: null,
  });
  const newest = session(2, turns);
  const revisions = [session(1, turns.slice(0, 1)), newest].map((one) => ({
    name: `000000000${String(one.revision)}.json`,
    session: one,
    text: JSON.stringify(one),
  }));
  return { tenantId, sessionId, session: newest, problem: undefined, messages, turns, revisions };
}

export function event(id: string, type: string, data: object): EventLine {
  return { line: 'event', atMs: 1000, event: type, data: JSON.stringify(data), id };
}

/** What a reader saw who was cut off once in the middle. */
export function transcript(number: 0 | 1, reader: ReaderName): Transcript {
  const turnId = turnIds[number];
  const begin = [
    event('0-1', 'session', { contact_id: sessionId, turnId }),
    event('7-1', 'text_delta', { delta: number === 0 ? 'one ' : 'looks first. ' }),
  ];
  const call = [
    event('7-2', 'tool_call_start', { id: 'call_1', name: 'memory_write', input: {} }),
    event('7-3', 'tool_call_end', { id: 'call_1', name: 'memory_write', durationMs: 1, isError: false }),
    event('7-4', 'tool_result', { id: 'call_1', name: 'memory_write', output: 'Kept.', isError: false }),
  ];
  const end = [
    event('7-8', 'text_delta', { delta: number === 0 ? 'two' : 'three four' }),
    event('7-9', 'done', { inputTokens: 0, outputTokens: 0, finishReason: 'stop' }),
  ];
  const open = (lastEventId: string | null): Transcript['lines'][number] => ({
    line: 'open',
    atMs: 1000,
    gateway: 'http://127.0.0.1:1',
    lastEventId,
  });
  const resumed: Transcript['lines'] = [{ line: 'close', atMs: 1000, reason: 'cut by the client' }, open('7-1')];
  return { turnId, reader, lines: [open(null), ...begin, ...resumed, ...(number === 0 ? [] : call), ...end] };
}

/** What a reader got who wanted the whole answer at once. */
export function replyTranscript(
  number: 0 | 1,
  reader: ReaderName,
  { text = '', calls = null, error = null }: { text?: string; calls?: string[] | null; error?: string | null },
): Transcript {
  return { turnId: turnIds[number], reader, lines: [{ line: 'reply', atMs: 1000, text, calls, error }] };
}
