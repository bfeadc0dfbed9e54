import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { playScript } from './scripted-model-player.ts';
import type { Script } from './scripted-model-script.ts';
import { mapMeanings, standInEmbedding, type Synonyms } from './stand-in-embedding.ts';

const EmbeddingsRequest = z.object({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string()).min(1).max(2048)]),
  encoding_format: z.enum(['float', 'base64']).nullish(),
});

/** One request for vectors as the server saw it. */
export interface RecordedEmbeddings {
  readonly model: string;
  readonly inputs: readonly string[];
  readonly headers: IncomingMessage['headers'];
}

/** The scripted model's `/v1/embeddings`: stand-in vectors, unless a test has it fail. */
export class ScriptedEmbeddings {
  readonly requests: RecordedEmbeddings[] = [];
  readonly #meanings: ReadonlyMap<string, string>;
  readonly #scripts: Script[] = [];

  constructor(synonyms: Synonyms = []) {
    this.#meanings = mapMeanings(synonyms);
  }

  /** All texts that were embedded, refused ones included. */
  get inputs(): string[] {
    return this.requests.flatMap(({ inputs }) => inputs);
  }

  /** The next requests get these answers in place of vectors. */
  enqueue(...scripts: Script[]): void {
    this.#scripts.push(...scripts);
  }

  /** @throws for a body that is no request for vectors */
  async answer(request: IncomingMessage, { body, response }: { body: string; response: ServerResponse }): Promise<void> {
    const asked = EmbeddingsRequest.parse(JSON.parse(body));
    const inputs = typeof asked.input === 'string' ? [asked.input] : asked.input;
    this.requests.push({ model: asked.model, inputs, headers: request.headers });
    const script = this.#scripts.shift();
    if (script !== undefined) {
      await playScript(response, script, { model: asked.model, stream: false, includeUsage: false, promptTokens: 0 });
      return;
    }
    const tokens = inputs.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
    const data = inputs.map((text, index) => ({ object: 'embedding', index, embedding: this.#embed(text, asked.encoding_format) }));
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ object: 'list', model: asked.model, data, usage: { prompt_tokens: tokens, total_tokens: tokens } }));
  }

  #embed(text: string, format: 'float' | 'base64' | null | undefined): number[] | string {
    const vector = standInEmbedding(text, this.#meanings);
    return format === 'base64' ? Buffer.from(new Float32Array(vector).buffer).toString('base64') : vector;
  }
}
