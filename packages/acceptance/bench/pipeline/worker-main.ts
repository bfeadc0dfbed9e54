// Worker of the baseline pipelines: BullMQ worker → streamed HTTP to the model → Redis pub/sub, deltas that arrive
// together written together. With SESSIONS_FOLDER it is the durable pipeline: one session file read and written per
// turn.
import { Agent, request, type IncomingMessage } from 'node:http';
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { readPipelineConfig } from '../config.ts';
import { encode, queueName, type PipelineTurn, SessionFile, type Messages } from './pipeline-turn.ts';

const CONCURRENCY = 256;

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[];
}

const { redisSocket, modelPort, sessionsFolder } = readPipelineConfig();
const redis = new Redis(redisSocket, { maxRetriesPerRequest: null });
const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

async function runTurn(turn: PipelineTurn): Promise<void> {
  const file = sessionsFolder === undefined ? undefined : new SessionFile(sessionsFolder, turn.sessionId);
  const past = (await file?.read()) ?? [];
  const messages = [...past, { role: 'user', text: turn.text }];
  let text = '';
  let unread = '';
  for await (const piece of await ask(messages)) {
    const events = `${unread}${String(piece)}`.split('\n\n');
    unread = events.pop() ?? '';
    const deltas = events.flatMap(readDelta);
    if (deltas.length === 0) continue;
    text += deltas.join('');
    const sse = deltas.map((delta) => `event: text_delta\ndata: ${JSON.stringify({ delta })}\n\n`).join('');
    await redis.publish(turn.channel, encode(turn.turnId, false, sse));
  }
  await file?.write([...messages, { role: 'assistant', text }]);
  await redis.publish(turn.channel, encode(turn.turnId, true, 'event: done\ndata: {}\n\n'));
}

async function ask(messages: Messages): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const body = JSON.stringify({ model: 'scripted', stream: true, messages: messages.map(({ role, text }) => ({ role, content: text })) });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const options = { host: '127.0.0.1', port: modelPort, path: '/v1/chat/completions', method: 'POST', agent, headers };
  request(options, resolve).once('error', reject).end(body);
  return promise;
}

function readDelta(event: string): string[] {
  if (!event.startsWith('data: {')) return [];
  // Not validated: the baseline does as little as possible.
  const chunk: Chunk = JSON.parse(event.slice('data: '.length));
  const delta = chunk.choices[0]?.delta.content ?? '';
  return delta === '' ? [] : [delta];
}

const worker = new Worker<PipelineTurn>(queueName, async (job) => await runTurn(job.data), {
  connection: redis,
  concurrency: CONCURRENCY,
  removeOnComplete: { count: 0 },
});
worker.on('error', () => undefined);
await worker.waitUntilReady();
process.send?.({ port: 0 });
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
