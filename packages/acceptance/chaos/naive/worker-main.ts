// The naive worker: one job is one turn, and the session file is read, changed and written.
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { Session, type SessionMessage, type TurnRecord, type ToolCall } from '@concierge/contract';
import { armFailpoints, failpoint } from '@concierge/runtime';
import { readNaiveConfig } from '../config.ts';
import { eventsKey, NaiveTurn, queueName } from './naive-turn.ts';
import { z } from 'zod';
import { EventStreamReader } from '../load/event-stream.ts';
import { Worker } from 'bullmq'; // eslint-disable-line no-restricted-imports -- the naive system has a queue of its own, to show what it loses

const config = readNaiveConfig();
armFailpoints(config.failpoints);
const redis = new Redis(config.redisSocket, { maxRetriesPerRequest: null });
redis.on('error', () => undefined);

/**
 * BullMQ's defaults, but for two: several turns at once, as any worker that waits for a model has them, and clocks that
 * run six times as fast (lock 30 s, look for stalled jobs 30 s), so that a test need not wait for minutes. Attempts and
 * stalls stay as they come: 1.
 */
const worker = new Worker(queueName, async (job) => await runTurn(NaiveTurn.parse(job.data)), {
  connection: redis,
  concurrency: 6,
  lockDuration: 5000,
  stalledInterval: 5000,
});
worker.on('error', () => undefined);

async function runTurn(turn: NaiveTurn): Promise<void> {
  const said = await converse(turn);
  const now = new Date().toISOString();
  // Read as late as possible: the usual early read loses so much that no other fault would show.
  const session = await load(turn);
  const messages = [...session.messages, ...said];
  const next: Session = {
    ...session,
    revision: session.revision + 1,
    updatedAt: now,
    messages,
    messageCount: messages.length,
    turns: [...session.turns, buildRecord(turn, now)],
  };
  await writeFile(buildPath(turn), JSON.stringify(next));
  await failpoint('naive.after-save');
  await emit(turn.turnId, 'done', { inputTokens: 0, outputTokens: 0, finishReason: 'stop' });
}

/** The model's rounds: text, tool calls, text. */
async function converse(turn: NaiveTurn): Promise<SessionMessage[]> {
  const base = { turnId: turn.turnId, at: new Date().toISOString() };
  const sent: ModelMessage[] = [{ role: 'user', content: turn.text }];
  const said: SessionMessage[] = [{ ...base, id: `${turn.turnId}.0`, role: 'user', text: turn.text, sent: turn.text }];
  for (let round = 1; round <= 5; round += 1) {
    const { text, toolCalls } = await askModel(config.modelUrl, sent, async (delta) => await emit(turn.turnId, 'text_delta', { delta }));
    said.push({ ...base, id: `${turn.turnId}.${String(round)}`, role: 'assistant', text, ...(toolCalls.length > 0 && { toolCalls }) });
    if (toolCalls.length === 0) return said;
    sent.push({
      role: 'assistant',
      content: text,
      tool_calls: toolCalls.map(({ id, name, arguments: given }) => ({ id, type: 'function', function: { name, arguments: given } })),
    });
    for (const call of toolCalls) {
      await emit(turn.turnId, 'tool_call_start', { id: call.id, name: call.name, input: {} });
      if (call.name !== 'status') await appendFile(join(config.dataDir, 'tenants', turn.tenantId, 'notes.md'), `${call.arguments}\n`);
      await emit(turn.turnId, 'tool_result', { id: call.id, name: call.name, output: 'ok', isError: false });
      sent.push({ role: 'tool', tool_call_id: call.id, content: 'ok' });
      said.push({ ...base, id: `${turn.turnId}.${call.id}`, role: 'tool', callId: call.id, name: call.name, output: 'ok', isError: false });
    }
  }
  return said;
}

async function emit(turnId: string, type: string, data: object): Promise<void> {
  await redis.xadd(eventsKey(turnId), '*', 't', type, 'd', JSON.stringify(data));
}

function buildPath({ tenantId, sessionId }: NaiveTurn): string {
  return join(config.dataDir, 'tenants', tenantId, 'sessions', `${sessionId}.json`);
}

async function load(turn: NaiveTurn): Promise<Session> {
  await mkdir(join(config.dataDir, 'tenants', turn.tenantId, 'sessions'), { recursive: true });
  try {
    return Session.parse(JSON.parse(await readFile(buildPath(turn), 'utf8')));
  } catch {
    const now = new Date().toISOString();
    const empty = { messageCount: 0, summary: null, messages: [], turns: [], contextTokens: null };
    return {
      version: 1,
      id: turn.sessionId,
      agent: turn.agent,
      channel: 'web',
      sender: null,
      revision: 0,
      createdAt: now,
      updatedAt: now,
      title: '',
      ...empty,
    };
  }
}

function buildRecord({ turnId }: NaiveTurn, now: string): TurnRecord {
  const nothing = { usage: { inputTokens: 0, outputTokens: 0 }, models: [], error: null, steps: [], requestHash: '', keyId: null };
  return {
    id: turnId,
    status: 'done',
    origin: 'api',
    acceptedAt: now,
    startedAt: now,
    firstTextAt: now,
    endedAt: now,
    attempts: 1,
    finishReason: 'stop',
    ...nothing,
  };
}

type ModelMessage =
  | { readonly role: 'user' | 'assistant'; readonly content: string; readonly tool_calls?: readonly object[] }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

const Chunk = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        content: z.string().nullish(),
        tool_calls: z
          .array(
            z.object({
              index: z.int(),
              id: z.string().nullish(),
              function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
            }),
          )
          .nullish(),
      }),
    }),
  ),
});

/** One streamed chat completion. Throws what `fetch` throws. */
async function askModel(
  url: string,
  messages: readonly ModelMessage[],
  onText: (delta: string) => Promise<void>,
): Promise<{ text: string; toolCalls: ToolCall[] }> {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer test-key' };
  const response = await fetch(`${url}/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'scripted', stream: true, messages }),
  });
  let text = '';
  const toolCalls: ToolCall[] = [];
  const deltas: string[] = [];
  const events = new EventStreamReader(({ data }) => {
    if (data === '[DONE]') return;
    for (const { delta } of Chunk.parse(JSON.parse(data)).choices) {
      if (delta.content != null && delta.content !== '') deltas.push(delta.content);
      for (const call of delta.tool_calls ?? []) grow(toolCalls, call);
    }
  });
  for await (const bytes of response.body ?? []) {
    events.feed(bytes);
    for (const delta of deltas.splice(0)) {
      text += delta;
      await onText(delta);
    }
  }
  return { text, toolCalls };
}

function grow(
  calls: ToolCall[],
  piece: {
    index: number;
    id?: string | null | undefined;
    function?: { name?: string | null | undefined; arguments?: string | null | undefined } | null | undefined;
  },
): void {
  const call = calls[piece.index];
  if (call === undefined)
    calls[piece.index] = { id: piece.id ?? '', name: piece.function?.name ?? '', arguments: piece.function?.arguments ?? '' };
  else call.arguments += piece.function?.arguments ?? '';
}
