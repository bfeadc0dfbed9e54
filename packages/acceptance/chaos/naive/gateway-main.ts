// The naive gateway: what is in Redis is all there is.
import { randomBytes, createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { encodeServerSentEvent } from '@concierge/contract';
import { armFailpoints, failpoint } from '@concierge/runtime';
import { readNaiveConfig } from '../config.ts';
import { eventsKey, queueName, type NaiveTurn } from './naive-turn.ts';
import { Queue } from 'bullmq'; // eslint-disable-line no-restricted-imports -- the naive system has a queue of its own, to show what it loses

const POLL_MS = 60;
const config = readNaiveConfig();
armFailpoints(config.failpoints);
const redis = new Redis(config.redisSocket, { maxRetriesPerRequest: null });
redis.on('error', () => undefined);
const queue = new Queue(queueName, { connection: redis });
queue.on('error', () => undefined);

const Body = z.object({ message: z.string(), sender: z.string().optional(), contact_id: z.string().optional() });
const Entries = z.array(z.tuple([z.string(), z.tuple([z.literal('t'), z.string(), z.literal('d'), z.string()])]));

createServer((request, response) => {
  handle(request, response).catch(() => {
    response.destroy();
  });
}).listen(config.port, '127.0.0.1');

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const followed = /^\/api\/turns\/(\w+)\/events$/u.exec(request.url ?? '')?.[1];
  if (followed !== undefined) {
    await follow(response, followed, String(request.headers['last-event-id'] ?? '-'));
    return;
  }
  if (request.method !== 'POST') {
    response.writeHead(200).end();
    return;
  }
  const turn = await toTurn(request);
  await queue.add('turn', turn);
  await failpoint('naive.after-add');
  await redis.xadd(eventsKey(turn.turnId), '0-1', 't', 'session', 'd', JSON.stringify({ contact_id: turn.sessionId, turnId: turn.turnId }));
  await follow(response, turn.turnId, '-');
}

/** No look at the Idempotency-Key. */
async function toTurn(request: IncomingMessage): Promise<NaiveTurn> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(Buffer.from(piece));
  const body = Body.parse(JSON.parse(Buffer.concat(pieces).toString('utf8')));
  const agent = request.url === '/api/admin' ? 'admin' : 'cs';
  const sessionId = body.contact_id ?? deriveNaiveSessionId(agent, body.sender ?? randomBytes(16).toString('hex'));
  return {
    turnId: `t_${randomBytes(16).toString('hex')}`,
    tenantId: String(request.headers['x-api-key']),
    sessionId,
    agent,
    text: body.message,
  };
}

async function follow(response: ServerResponse, turnId: string, after: string): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  let last = after;
  while (!response.destroyed) {
    const entries = Entries.parse(await redis.xrange(eventsKey(turnId), last === '-' ? '-' : `(${last}`, '+'));
    for (const [id, [, type, , data]] of entries) {
      response.write(encodeServerSentEvent(type, data, id));
      last = id;
      if (type === 'done') {
        response.end();
        return;
      }
    }
    await wait(POLL_MS);
  }
}

/** Stable for a sender, as the product's is. */
function deriveNaiveSessionId(agent: string, sender: string): string {
  return createHash('sha256').update(`${agent} ${sender}`).digest('hex').slice(0, 32);
}
