// The model server of a bench: answers every streamed chat completion with the same 20 deltas, as leanly as node:http
// can. POST /pace {"firstMs","betweenMs","hang"} changes how fast, for the requests that follow.
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

function complete(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0;
  request.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  request.on('end', () => {
    if (pace.hang) return;
    if (pace.firstMs === 0) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(begin + delta.repeat(DELTAS) + end(bytes));
    } else setTimeout(say, pace.firstMs, response, { left: DELTAS, bytes, betweenMs: pace.betweenMs });
  });
}

function say(response: ServerResponse, reply: { left: number; readonly bytes: number; readonly betweenMs: number }): void {
  if (response.destroyed) return;
  if (reply.left === DELTAS) response.writeHead(200, { 'content-type': 'text/event-stream' });
  const prefix = reply.left === DELTAS ? begin : '';
  reply.left -= 1;
  if (reply.left === 0) {
    response.end(delta + end(reply.bytes));
    return;
  }
  response.write(prefix + delta);
  setTimeout(say, reply.betweenMs, response, reply);
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address() as AddressInfo; // eslint-disable-line typescript/no-unsafe-type-assertion -- it listens on TCP
  process.send?.({ port: address.port });
});
process.once('disconnect', () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));
