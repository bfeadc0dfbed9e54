// The model server of a bench: answers every streamed chat completion with the same 20 deltas, as leanly as node:http
// can. POST /pace {"firstMs","betweenMs","hang"} changes how fast, for the requests that follow. A request whose last
// message says "[model takes N ms]" is answered in that time, whatever the pace.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';

const DELTAS = 20;
const Pace = z.object({ firstMs: z.number(), betweenMs: z.number(), hang: z.boolean() });
let pace: z.infer<typeof Pace> = { firstMs: 0, betweenMs: 0, hang: false };

const shared = '"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"scripted"';
const begin = frame('"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]');
const delta = frame('"choices":[{"index":0,"delta":{"content":"some words "},"finish_reason":null}]');
const finish = frame('"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]');

function frame(rest: string): string {
  return `data: {${shared},${rest}}\n\n`;
}

/** A token is about four characters: what the product decides its compaction on. */
function end(requestBytes: number): string {
  const prompt = String(Math.ceil(requestBytes / 4));
  return `${finish}${frame(`"choices":[],"usage":{"prompt_tokens":${prompt},"completion_tokens":${String(DELTAS)},"total_tokens":${prompt}}`)}data: [DONE]\n\n`;
}

const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  if (request.url === '/pace') setPace(request, response);
  else complete(request, response);
});

function setPace(request: IncomingMessage, response: ServerResponse): void {
  let text = '';
  request.on('data', (piece: Buffer) => {
    text += piece.toString('utf8');
  });
  request.on('end', () => {
    pace = Pace.parse(JSON.parse(text));
    response.writeHead(204).end();
  });
}

/** In the request as it was sent. The last one counts: earlier ones are those of earlier turns. */
const takes = /\[model takes (?<milliseconds>\d+) ms\]/gu;

interface Reply {
  left: number;
  readonly bytes: number;
  /** Until the next delta. */
  readonly delayMs: (left: number) => number;
}

function complete(request: IncomingMessage, response: ServerResponse): void {
  const began = performance.now();
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => {
    pieces.push(piece);
  });
  request.on('end', () => {
    if (pace.hang) return;
    const body = Buffer.concat(pieces);
    const { firstMs, betweenMs } = pace;
    const takesMs = Number([...body.toString('latin1').matchAll(takes)].at(-1)?.groups?.['milliseconds'] ?? 0);
    if (takesMs > 0) {
      // Late timers do not add up.
      const delayMs = (left: number): number => Math.max(0, began + takesMs - performance.now()) / left;
      setTimeout(say, delayMs(DELTAS), response, { left: DELTAS, bytes: body.length, delayMs });
    } else if (firstMs === 0) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(begin + delta.repeat(DELTAS) + end(body.length));
    } else setTimeout(say, firstMs, response, { left: DELTAS, bytes: body.length, delayMs: () => betweenMs });
  });
}

function say(response: ServerResponse, reply: Reply): void {
  if (response.destroyed) return;
  if (reply.left === DELTAS) response.writeHead(200, { 'content-type': 'text/event-stream' });
  const prefix = reply.left === DELTAS ? begin : '';
  reply.left -= 1;
  if (reply.left === 0) {
    response.end(delta + end(reply.bytes));
    return;
  }
  response.write(prefix + delta);
  setTimeout(say, reply.delayMs(reply.left), response, reply);
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on TCP
  process.send?.({ port: address.port });
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
