import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CompletionRequest, lastAsked, readMessageText } from '@concierge/model/demo';
import { readDirectives } from './scripted-model-directives.ts';
import { playScript } from './scripted-model-player.ts';
import { ScriptedEmbeddings } from './scripted-embeddings.ts';
import { say, status, type Script } from './scripted-model-script.ts';
import { ScriptedThinking, type ThinkingProvider } from './scripted-thinking.ts';
import type { Synonyms } from './stand-in-embedding.ts';

/** One call as the model server saw it. */
export interface RecordedRequest {
  /** Counts from 1, in order of arrival. */
  readonly number: number;
  readonly body: CompletionRequest;
  /** Everything the client sent, as parsed JSON. */
  readonly raw: unknown;
  readonly headers: IncomingMessage['headers'];
  /** The last user message: what the turn is about. */
  readonly userText: string;
  /** Model calls of this turn before this one. */
  readonly round: number;
  readonly startedAtMs: number;
  /** Undefined while it is being answered. */
  endedAtMs: number | undefined;
  /** The client went before the end. */
  aborted: boolean;
}

export type RequestMatcher = string | RegExp | ((request: RecordedRequest) => boolean);

export interface ScriptedModelOptions {
  /** 0 (the default): any free one. */
  readonly port?: number;
  /** Default 127.0.0.1: this machine alone. */
  readonly host?: string;
  /** For requests without a queued reply, matcher or directive; answers "ok" when not given. */
  readonly fallback?: Script | ((request: RecordedRequest) => Script);
  /** Keep requests in `requests`; off for benches. Default true. */
  readonly record?: boolean;
  /** It thinks as this provider does, and refuses what this provider refuses. */
  readonly thinksAs?: ThinkingProvider;
  /** Words that its vectors take for the same. */
  readonly synonyms?: Synonyms;
  readonly onStart?: (request: RecordedRequest) => void;
  readonly onEnd?: (request: RecordedRequest) => void;
}

/**
 * A model provider over real HTTP whose replies are scripted. The reply to a request comes from, in this order: the
 * queue, the first matcher that fits and has a script left, directives in the user's message (see `readDirectives`),
 * the fallback.
 */
export class ScriptedModel implements AsyncDisposable {
  readonly requests: RecordedRequest[] = [];
  readonly embeddings: ScriptedEmbeddings;
  readonly #options: ScriptedModelOptions;
  readonly #queue: Script[] = [];
  readonly #matchers: { matcher: RequestMatcher; scripts: Script[] }[] = [];
  /** How often a directed failure has been played, by turn text and round. */
  readonly #failuresPlayed = new Map<string, number>();
  readonly #thinking: ScriptedThinking | undefined;
  readonly #server: Server;
  #count = 0;
  #connections = 0;

  constructor(options: ScriptedModelOptions) {
    this.#options = options;
    this.embeddings = new ScriptedEmbeddings(options.synonyms);
    this.#thinking = options.thinksAs === undefined ? undefined : new ScriptedThinking(options.thinksAs);
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => this.#receive(request, response));
    this.#server.on('connection', () => {
      this.#connections += 1;
    });
  }

  /** Opened so far. */
  get connections(): number {
    return this.#connections;
  }

  /** Base URL for a providers file: `…/v1`. */
  get url(): string {
    return `http://127.0.0.1:${String(this.port)}/v1`;
  }

  get port(): number {
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on TCP has such an address
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject);
    this.#server.listen(this.#options.port ?? 0, this.#options.host ?? '127.0.0.1', resolve);
    await promise;
  }

  /** The next requests get these replies, whatever they ask. */
  enqueue(...scripts: Script[]): void {
    this.#queue.push(...scripts);
  }

  /** Requests whose user text contains, matches or fulfils `matcher` get these replies in turn. */
  when(matcher: RequestMatcher, ...scripts: Script[]): void {
    this.#matchers.push({ matcher, scripts });
  }

  /** What a provider does to connections that were kept too long. */
  dropIdleConnections(): void {
    this.#server.closeIdleConnections();
  }

  /** Cuts whatever is being answered. */
  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      this.#answer(request, { body: Buffer.concat(pieces).toString('utf8'), response }).catch((error: unknown) => {
        if (!response.headersSent) response.writeHead(400, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ error: { message: String(error), type: 'invalid_request_error', code: null } }));
      });
    });
  }

  async #answer(request: IncomingMessage, { body, response }: { body: string; response: ServerResponse }): Promise<void> {
    const path = request.method === 'POST' ? request.url?.split('?')[0] : undefined;
    if (path === '/v1/embeddings') return this.embeddings.answer(request, { body, response });
    if (path !== '/v1/chat/completions') {
      response.writeHead(404).end();
      return;
    }
    const record = this.#record(request, JSON.parse(body));
    this.#options.onStart?.(record);
    response.once('close', () => {
      record.endedAtMs = Date.now();
      record.aborted = !response.writableFinished;
      this.#options.onEnd?.(record);
    });
    await playScript(response, this.#scriptFor(record), {
      model: record.body.model,
      stream: record.body.stream === true,
      includeUsage: record.body.stream_options?.include_usage === true,
      promptTokens: Math.ceil(body.length / 4),
    });
  }

  #record(request: IncomingMessage, raw: unknown): RecordedRequest {
    const body = CompletionRequest.parse(raw);
    const lastUser = lastAsked(body.messages);
    const userMessage = body.messages[lastUser];
    this.#count += 1;
    const record: RecordedRequest = {
      number: this.#count,
      body,
      raw,
      headers: request.headers,
      userText: userMessage === undefined ? '' : readMessageText(userMessage),
      round: body.messages.slice(lastUser + 1).filter((message) => message.role === 'assistant').length,
      startedAtMs: Date.now(),
      endedAtMs: undefined,
      aborted: false,
    };
    if (this.#options.record !== false) this.requests.push(record);
    return record;
  }

  #scriptFor(record: RecordedRequest): Script {
    const refusal = this.#thinking?.refuse(record.raw);
    if (refusal !== undefined) return refusal;
    const script = this.#nextScript(record);
    return this.#thinking?.think(script) ?? script;
  }

  #nextScript(record: RecordedRequest): Script {
    return this.#queue.shift() ?? this.#matched(record) ?? this.#directed(record) ?? this.#fallback(record);
  }

  #matched(record: RecordedRequest): Script | undefined {
    return this.#matchers.find(({ matcher, scripts }) => scripts.length > 0 && matches(matcher, record))?.scripts.shift();
  }

  #directed(record: RecordedRequest): Script | undefined {
    const directives = readDirectives(record.userText);
    if (directives === undefined) return undefined;
    const reply = directives.replies[record.round];
    if (reply === undefined) return [say('ok')];
    const key = `${String(record.round)} ${record.userText}`;
    const played = this.#failuresPlayed.get(key) ?? 0;
    const failure = reply.failures.flatMap(({ script, count }) => Array.from({ length: count }, () => script))[played];
    if (failure === undefined) return reply.script;
    this.#failuresPlayed.set(key, played + 1);
    return failure;
  }

  #fallback(record: RecordedRequest): Script {
    const { fallback = [say('ok')] } = this.#options;
    return typeof fallback === 'function' ? fallback(record) : fallback;
  }
}

function matches(matcher: RequestMatcher, record: RecordedRequest): boolean {
  if (typeof matcher === 'function') return matcher(record);
  return typeof matcher === 'string' ? record.userText.includes(matcher) : matcher.test(record.userText);
}

/** Starts a scripted model; the caller closes it. */
export async function startScriptedModel(options: ScriptedModelOptions = {}): Promise<ScriptedModel> {
  const model = new ScriptedModel(options);
  await model.listen();
  return model;
}

/** What a provider answers when the conversation is too long for the model. */
export const contextOverflow: Script = [
  status(400, {
    body: {
      error: {
        message: "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    },
  }),
];
