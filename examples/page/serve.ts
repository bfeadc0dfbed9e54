// Serves index.html, and passes its messages on to Concierge with the key, which never reaches the browser.
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const { CONCIERGE_URL = 'http://localhost:8000', CONCIERGE_KEY = '', PORT = '3000' } = process.env;
const MESSAGE_MAX_BYTES = 200_000;

async function readBody(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const piece of request.setEncoding('utf8')) {
    body += String(piece);
    if (body.length > MESSAGE_MAX_BYTES) throw new Error('too large');
  }
  return body;
}

/**
 * The stream goes through as it comes, errors too. The browser's key for the message makes a second try the same turn.
 */
async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const answer = await fetch(`${CONCIERGE_URL}/api/cs`, {
    method: 'POST',
    headers: {
      'X-API-Key': CONCIERGE_KEY,
      'Content-Type': 'application/json',
      'Idempotency-Key': String(request.headers['idempotency-key']),
    },
    // Take the user from your own session, never from the page.
    body: JSON.stringify({ message: await readBody(request), sender: 'example-page' }),
    signal: gone.signal,
  });
  response.writeHead(answer.status, { 'Content-Type': answer.headers.get('content-type') ?? 'text/plain' });
  if (answer.body === null) response.end();
  else await pipeline(Readable.fromWeb(answer.body), response);
}

const server = createServer((request, response) => {
  const answering =
    request.method === 'POST' && request.url === '/chat'
      ? passOn(request, response)
      : readFile(new URL('index.html', import.meta.url)).then((page) => {
          response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end(page);
        });
  answering.catch(() => {
    if (response.headersSent) response.destroy();
    else response.writeHead(503).end();
  });
});
server.listen(Number(PORT), 'localhost', () => {
  const address = server.address();
  if (address !== null && typeof address === 'object') console.log(`Open http://localhost:${String(address.port)}`);
});
