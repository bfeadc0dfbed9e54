import type { SessionMessage, TurnRecord } from '@concierge/contract';
import type { ReaderName, Transcript, TranscriptLine } from './evidence.ts';
import type { Finding } from './finding.ts';

/** What the files record about a turn. */
export interface Saved {
  readonly messages: readonly SessionMessage[];
  readonly record: TurnRecord | undefined;
}

type ReplyLine = Extract<TranscriptLine, { line: 'reply' }>;

/** Readers that get one whole answer, or a stream that can take nothing back. */
const replyReaders: ReadonlySet<ReaderName> = new Set(['jsonAsker', 'completionAsker', 'completionStreamer', 'jsonRetrier']);
/** Marks a reply of `/v1` where text that its client has already seen is void. */
const TELLS_AGAIN = '\n\n[The text above was cut off and is void. Again:]\n\n';

export function isReply({ reader }: Transcript): boolean {
  return replyReaders.has(reader);
}

/** I20: the one answer of a turn is the one in its session file. */
export function auditReply({ turnId, reader, lines }: Transcript, { messages, record }: Saved): Finding[] {
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
