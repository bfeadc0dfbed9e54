// Gateway of the baseline pipelines: Express POST → BullMQ add, Redis pub/sub → SSE. Accepts nothing durably, checks
// nothing.
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { Queue } from 'bullmq';
import express, { type Response } from 'express';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { readPipelineConfig } from '../config.ts';
import { decode, queueName, type PipelineTurn } from './pipeline-turn.ts';

const { redisSocket } = readPipelineConfig();
const redis = new Redis(redisSocket, { maxRetriesPerRequest: null });
const subscriber = new Redis(redisSocket);
const queue = new Queue<PipelineTurn>(queueName, { connection: redis, defaultJobOptions: { removeOnComplete: true, removeOnFail: true } });
const channel = `gateway:${randomUUID()}`;
const waiting = new Map<string, Response>();
const Body = z.object({ message: z.string(), sender: z.string() });

const app = express();
app.disable('x-powered-by');
app.use(express.json());
app.post('/api/cs', async (request, response) => {
  const body = Body.parse(request.body);
  const turnId = randomUUID();
  waiting.set(turnId, response);
  response.once('close', () => waiting.delete(turnId));
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache, no-transform' });
  await queue.add('turn', { turnId, sessionId: body.sender, text: body.message, channel });
});

subscriber.on('message', (_channel: string, message: string) => {
  const { turnId, ends, sse } = decode(message);
  const response = waiting.get(turnId);
  if (ends) response?.end(sse);
  else response?.write(sse);
});
await subscriber.subscribe(channel);
const server = app.listen(0, '127.0.0.1', () => {
  server.keepAliveTimeout = 120_000;
  const address = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on TCP
  process.send?.({ port: address.port });
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
