import type { SessionMessage, TurnRecord } from '@concierge/contract';
import { z } from 'zod';
import type { AuditInput } from './audit-input.ts';
import { isAskers, type Transcript, type TranscriptLine, type ReaderName } from './evidence.ts';
import type { Finding } from './finding.ts';

export type EventLine = Extract<TranscriptLine, { line: 'event' }>;

const Delta = z.object({ delta: z.string() });
const Named = z.object({ id: z.string() });
const Reset = z.object({ reason: z.string() });
const Failure = z.object({ code: z.string() });

export function listEvents({ lines }: Transcript): EventLine[] {
  return lines.filter((line) => line.line === 'event');
}

/**
 * I9 and I20, and I2 where it is about endings: what a client saw, over all its connections, is the log and agrees with
 * the session.
 */
export function auditTranscripts(input: AuditInput): Finding[] {
  const messages = Map.groupBy(
    input.sessions.flatMap((file) => file.messages),
    ({ turnId }) => turnId,
  );
  const records = new Map(input.sessions.flatMap((file) => file.turns).map((record) => [record.id, record]));
  const heard = new Set(input.transcripts.filter(isAskers).map(({ turnId }) => turnId));
  const silent = input.acknowledged.filter(({ turnId }) => !heard.has(turnId));
  return [
    ...silent.map(({ turnId }): Finding => ({
      invariant: 'I1',
      kind: 'unanswered',
      subject: turnId,
      detail: 'its client has no transcript',
    })),
    ...input.transcripts.flatMap((transcript) => {
      const saved = { messages: messages.get(transcript.turnId) ?? [], record: records.get(transcript.turnId) };
      return isReply(transcript) ? auditReply(transcript, saved) : auditTranscript(transcript, saved);
    }),
  ];
}

function auditTranscript(transcript: Transcript, { messages, record }: Saved): Finding[] {
  const events = listEvents(transcript);
  const subject = `${transcript.turnId}.${transcript.reader}`;
  const finding = (kind: Finding['kind'], detail: string, invariant: Finding['invariant'] = 'I9'): Finding => ({
    invariant,
    kind,
    subject,
    detail,
  });
  const findings: Finding[] = [];
  const endings = events.filter(({ event }) => event === 'done' || event === 'error');
  if (endings.length === 0) findings.push(finding('unanswered', 'no terminal event', 'I1'));
  if (endings.length > 1) findings.push(finding('two endings', endings.map(({ event, id }) => `${event} ${id}`).join(', '), 'I2'));
  if (endings.length > 0 && !endings.includes(findLast(events))) findings.push(finding('wrong order', 'events after the end'));
  if (events[0]?.event !== 'session') findings.push(finding('no start', `begins with ${events[0]?.event ?? 'nothing'}`));
  if (events.filter(({ event }) => event === 'session').length > 1) findings.push(finding('repeat', 'more than one session event'));
  findings.push(...auditIds(events).map((detail) => finding('repeat', detail)));
  findings.push(...auditEnd(endings[0], record).map((detail) => finding('end differs', detail, 'I20')));
  if (endings[0]?.event === 'done') findings.push(...auditContent(events, messages).map(([kind, detail]) => finding(kind, detail)));
  return findings;
}

/** I20: a turn that was saved as done did not end in an error for any reader, nor the other way round. */
function auditEnd(end: EventLine | undefined, record: TurnRecord | undefined): string[] {
  if (end === undefined || record === undefined) return [];
  const seen = end.event === 'error' ? Failure.parse(JSON.parse(end.data)).code : null;
  const saved = record.error?.code ?? null;
  return seen === saved ? [] : [`seen ${seen ?? 'done'}, saved ${saved ?? 'done'}`];
}

function findLast(events: readonly EventLine[]): EventLine {
  const last = events.at(-1);
  if (last === undefined) throw new Error('no events');
  return last;
}

/** Ids rise over all connections, so no event came twice and none came late. */
function auditIds(events: readonly EventLine[]): string[] {
  return events.flatMap(({ id, event }, at) => {
    const before = events[at - 1];
    return before === undefined || isAfter(id, before.id) ? [] : [`${event} ${id} came after ${before.event} ${before.id}`];
  });
}

export function readEpoch(id: string): number {
  return Number(id.split('-')[0]);
}

function isAfter(id: string, other: string): boolean {
  return (
    readEpoch(id) - readEpoch(other) > 0 || (readEpoch(id) === readEpoch(other) && Number(id.split('-')[1]) > Number(other.split('-')[1]))
  );
}

function auditContent(events: readonly EventLine[], messages: readonly SessionMessage[]): [Finding['kind'], string][] {
  const seen = foldTranscript(events);
  const saved = messages.filter((message) => message.role === 'assistant');
  const reply = saved.map(({ text }) => text).join('');
  const calls = saved.flatMap(({ toolCalls }) => (toolCalls ?? []).map(({ id }) => id));
  const findings: [Finding['kind'], string][] = [];
  if (seen.text !== reply) findings.push(['text differs', `seen ${JSON.stringify(seen.text)}, saved ${JSON.stringify(reply)}`]);
  if (seen.started.join() !== calls.join()) findings.push(['tools differ', `started ${seen.started.join()}, saved ${calls.join()}`]);
  if (seen.finished.toSorted().join() !== calls.toSorted().join())
    findings.push(['tools differ', `results ${seen.finished.join()}, saved ${calls.join()}`]);
  return findings;
}

/**
 * What a client has in front of it in the end. A `text_reset` makes the text since the last tool result void; one with
 * the reason `stream_lost` everything, tool calls included: the turn is replayed from its start.
 */
export function foldTranscript(events: readonly EventLine[]): { text: string; started: string[]; finished: string[] } {
  let settled = '';
  let open = '';
  let started: string[] = [];
  let finished: string[] = [];
  for (const { event, data } of events) {
    const json: unknown = JSON.parse(data);
    if (event === 'text_delta') open += Delta.parse(json).delta;
    if (event === 'tool_call_start') started.push(Named.parse(json).id);
    if (event === 'tool_result') {
      finished.push(Named.parse(json).id);
      settled += open;
      open = '';
    }
    if (event === 'text_reset') {
      open = '';
      if (Reset.parse(json).reason === 'stream_lost') [settled, started, finished] = ['', [], []];
    }
  }
  return { text: settled + open, started, finished };
}

/** What the files record about a turn. */
interface Saved {
  readonly messages: readonly SessionMessage[];
  readonly record: TurnRecord | undefined;
}

type ReplyLine = Extract<TranscriptLine, { line: 'reply' }>;

/** Readers that get one whole answer, or a stream that can take nothing back. */
const replyReaders: ReadonlySet<ReaderName> = new Set(['jsonAsker', 'completionAsker', 'completionStreamer', 'jsonRetrier']);
/** Marks a reply of `/v1` where text that its client has already seen is void. */
const TELLS_AGAIN = '\n\n[The text above was cut off and is void. Again:]\n\n';

function isReply({ reader }: Transcript): boolean {
  return replyReaders.has(reader);
}

/** I20: the one answer of a turn is the one in its session file. */
function auditReply({ turnId, reader, lines }: Transcript, { messages, record }: Saved): Finding[] {
  const subject = `${turnId}.${reader}`;
  const differs = (detail: string): Finding => ({ invariant: 'I20', kind: 'reply differs', subject, detail });
  const reply = lines.filter((line) => line.line === 'reply').at(-1);
  if (reply === undefined) return [{ invariant: 'I1', kind: 'unanswered', subject, detail: 'no reply' }];
  const error = record?.error?.code ?? null;
  if (record !== undefined && reply.error !== error) return [differs(`answered ${reply.error ?? 'done'}, saved ${error ?? 'done'}`)];
  return reply.error === null ? contentProblems(reply, messages).map((detail) => differs(detail)) : [];
}

function contentProblems(reply: ReplyLine, messages: Saved['messages']): string[] {
  const saved = messages.filter((message) => message.role === 'assistant');
  const text = saved.map((message) => message.text).join('');
  const calls = saved.flatMap(({ toolCalls }) => (toolCalls ?? []).map(({ id }) => id)).join();
  const [again, ...before] = reply.text.split(TELLS_AGAIN).toReversed();
  const agrees = before.length === 0 ? text === reply.text : text.endsWith(again ?? '');
  const problems = agrees ? [] : [`answered ${JSON.stringify(reply.text)}, saved ${JSON.stringify(text)}`];
  if (reply.calls !== null && reply.calls.join() !== calls) problems.push(`answered calls ${reply.calls.join()}, saved ${calls}`);
  return problems;
}
