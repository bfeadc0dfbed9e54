import { randomUUID, createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  CompletionRequest,
  CompletionStream,
  streamEnd,
  streamHeaders,
  wholeCompletion,
  type CompletionToolCall,
  type CompletionUsage,
  type WholeCompletion,
} from './completion.ts';
import { demoReply, readTurn } from './demo-reply.ts';

const MODEL = 'demo';
/** A conversation with a few images fits. */
const BODY_MAX_BYTES = 64 * 1024 * 1024;
const WORD_MS = 15;
const CLOSE_GRACE_MS = 1000;

export interface DemoModelOptions {
  /** 0 (the default): any free one. */
  readonly port?: number;
  /** Default 127.0.0.1: it asks for no key, so it should not be reachable from elsewhere. */
  readonly host?: string;
  /** Between words of a streamed reply; default 15. */
  readonly wordMs?: number;
}

export interface DemoModel {
  /** Base URL for a providers file, as in `http://127.0.0.1:4100/v1`. */
  readonly url: string;
  /** Takes no new requests and gives replies under way a second. */
  close(): Promise<void>;
}

/**
 * Answers when no model key is configured: a real HTTP server with the streaming chat completions protocol, so that the
 * same client code runs as with a provider. Its replies state that they are a demonstration.
 */
export async function startDemoModel(options: DemoModelOptions = {}): Promise<DemoModel> {
  const host = options.host ?? '127.0.0.1';
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    route({ request, response, wordMs: options.wordMs ?? WORD_MS }).catch((error: unknown) => refuse(response, error));
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(options.port ?? 0, host, resolve);
  await promise;
  return { url: `http://${host}:${String(readPort(server))}/v1`, close: () => close(server) };
}

function readPort(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function close(server: Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await promise;
  clearTimeout(timer);
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly wordMs: number;
}

async function route({ request, response, wordMs }: Exchange): Promise<void> {
  const path = request.url?.split('?')[0] ?? '';
  switch (`${request.method ?? ''} ${path}`) {
    case 'POST /v1/chat/completions':
      await complete(response, { completion: CompletionRequest.parse(await readJson(request)), wordMs });
      return;
    case 'POST /v1/embeddings':
      sendJson(response, 200, embeddings(EmbeddingsRequest.parse(await readJson(request))));
      return;
    case 'GET /v1/models':
      sendJson(response, 200, { object: 'list', data: [{ id: MODEL, object: 'model', created: 0, owned_by: 'concierge' }] });
      return;
    default:
      sendJson(response, 404, errorBody('The demo model has no such endpoint.'));
  }
}

async function complete(
  response: ServerResponse,
  { completion, wordMs }: { completion: CompletionRequest; wordMs: number },
): Promise<void> {
  const { text, calls } = demoReply(readTurn(completion));
  const toolCalls = calls.map((call): CompletionToolCall => ({ id: `call_${randomUUID()}`, name: call.tool, arguments: call.arguments }));
  const reply = {
    model: completion.model,
    text,
    toolCalls,
    finishReason: toolCalls.length > 0 ? 'tool_calls' : 'stop',
    usage: countUsage(completion, text),
  };
  if (completion.stream !== true) sendJson(response, 200, wholeCompletion(reply));
  else await streamReply(response, { ...reply, wordMs, includeUsage: completion.stream_options?.include_usage === true });
}

interface StreamedReply extends WholeCompletion {
  readonly wordMs: number;
  readonly includeUsage: boolean;
}

async function streamReply(response: ServerResponse, reply: StreamedReply): Promise<void> {
  const stream = new CompletionStream(reply.model);
  response.writeHead(200, streamHeaders);
  response.write(stream.role());
  for (const word of reply.text.match(/\S+\s*|\s+/gu) ?? []) {
    if (response.destroyed) return;
    response.write(stream.text(word));
    await sleep(reply.wordMs);
  }
  const calls = reply.toolCalls.map((call, index) => stream.toolCall(index, call)).join('');
  response.end(calls + stream.finish(reply.finishReason) + (reply.includeUsage ? stream.usage(reply.usage) : '') + streamEnd);
}

function countUsage(completion: CompletionRequest, text: string): CompletionUsage {
  return {
    promptTokens: Math.ceil(JSON.stringify(completion.messages).length / 4),
    completionTokens: Math.max(1, Math.ceil(text.length / 4)),
  };
}

const EmbeddingsRequest = z.object({
  input: z.union([z.string(), z.array(z.string()).min(1).max(2048)]),
  dimensions: z.int().min(1).max(4096).nullish(),
  encoding_format: z.enum(['float', 'base64']).nullish(),
});

function embeddings({ input, dimensions, encoding_format: format }: z.infer<typeof EmbeddingsRequest>): Record<string, unknown> {
  const texts = typeof input === 'string' ? [input] : input;
  const tokens = texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  const data = texts.map((text, index) => {
    const vector = hashEmbedding(text, dimensions ?? DEMO_DIMENSIONS);
    const embedding = format === 'base64' ? Buffer.from(vector.buffer).toString('base64') : [...vector];
    return { object: 'embedding', index, embedding };
  });
  return { object: 'list', model: MODEL, data, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > BODY_MAX_BYTES) throw new RangeError('the body is too large');
    pieces.push(piece);
  }
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const message = error instanceof z.ZodError ? z.prettifyError(error) : 'The body cannot be read as JSON.';
  sendJson(response, error instanceof RangeError ? 413 : 400, errorBody(message));
}

function errorBody(message: string): Record<string, unknown> {
  return { error: { message, type: 'invalid_request_error', param: null, code: null } };
}

const DEMO_DIMENSIONS = 256;

/**
 * A unit vector from the words of a text: equal texts are equal, texts that share words are near. It knows no meaning;
 * it is for trying what is built on embeddings.
 */
function hashEmbedding(text: string, dimensions: number = DEMO_DIMENSIONS): Float32Array {
  const vector = new Float32Array(dimensions);
  for (const word of text.toLowerCase().match(/[\p{L}\d]+/gu) ?? ['']) {
    const digest = createHash('sha256').update(word).digest();
    const index = digest.readUInt32LE(0) % dimensions;
    vector[index] = (vector[index] ?? 0) + (digest.readUInt8(4) % 2 === 0 ? 1 : -1);
  }
  const length = Math.hypot(...vector);
  return length === 0 ? vector.fill(1 / Math.sqrt(dimensions)) : vector.map((value) => value / length);
}
