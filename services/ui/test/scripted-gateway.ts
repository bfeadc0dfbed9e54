import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  clip,
  encodeServerSentEvent,
  limits,
  type ErrorCode,
  type SessionPage,
  type TurnEvent,
  type TurnView,
  errorCodes,
} from '@concierge/contract';

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

type Trouble = 'cut' | 'hang' | ErrorCode;

const at = '2026-11-20T12:00:00.000Z';

/** A turn whose text the test scripts. */
export class ScriptedTurn {
  readonly id: string;
  readonly contactId: string;
  /** Null: the conversation no longer has it. */
  readonly message: string | null;
  status: TurnView['status'] = 'running';
  readonly #log: string[] = [];
  readonly #readers = new Set<ServerResponse>();

  constructor(id: string, { contactId, message }: Pick<ScriptedTurn, 'contactId' | 'message'>) {
    this.id = id;
    this.contactId = contactId;
    this.message = message;
    this.emit({ type: 'session', data: { contact_id: contactId, turnId: id } });
  }

  get readers(): number {
    return this.#readers.size;
  }

  emit(event: TurnEvent): void {
    const text = encodeServerSentEvent(event.type, JSON.stringify(event.data), `${this.id}-${String(this.#log.length)}`);
    this.#log.push(text);
    for (const reader of this.#readers) reader.write(text);
    if (event.type !== 'done' && event.type !== 'error') return;
    this.status = event.type === 'done' ? 'done' : 'failed';
    for (const reader of this.#readers) reader.end();
  }

  say(delta: string): void {
    this.emit({ type: 'text_delta', data: { delta } });
  }

  finish(finishReason: 'stop' | 'cancelled' = 'stop'): void {
    this.emit({ type: 'done', data: { inputTokens: 1, outputTokens: 1, finishReason } });
  }

  /** Breaks the connections of everyone who reads. */
  cut(): void {
    for (const reader of this.#readers) reader.destroy();
  }

  read(response: ServerResponse, after: string | undefined): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    const seen = after === undefined ? 0 : this.#log.findIndex((text) => text.includes(`id: ${after}\n`)) + 1;
    for (const text of this.#log.slice(seen)) response.write(text);
    if (this.status === 'done' || this.status === 'failed') {
      response.end();
      return;
    }
    this.#readers.add(response);
    response.once('close', () => this.#readers.delete(response));
  }

  view(): TurnView {
    const times = { acceptedAt: at, startedAt: at, firstTextAt: null, endedAt: null };
    const usage = { inputTokens: 1, outputTokens: 1 };
    const { id, status, contactId } = this;
    return {
      id,
      contact_id: contactId,
      agent: 'admin',
      channel: 'web',
      origin: 'api',
      status,
      ...times,
      attempts: 1,
      usage,
      finishReason: null,
      error: null,
      ...(this.message !== null && { input: clip(this.message, limits.excerptMaxCharacters - 1) }),
    };
  }
}

/** A gateway over real HTTP whose turns are run by the test. */
export class ScriptedGateway implements AsyncDisposable {
  readonly url: string;
  readonly requests: SeenRequest[] = [];
  readonly turns: ScriptedTurn[] = [];
  /** `hidden`: the key may not read it. */
  readonly sessions = new Map<string, SessionPage | 'hidden'>();
  /** Streams begin at the turn's start, whatever was seen. */
  replaysAll = false;
  /** When the next answers with a conversation come, each as that was when it was asked for. */
  readonly heldSessions: Promise<void>[] = [];
  readonly #server: Server;
  readonly #byIdempotencyKey = new Map<string, ScriptedTurn>();
  readonly #troubles: Trouble[] = [];

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.url = `http://127.0.0.1:${String(port)}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#answer(request, response));
  }

  static async start(): Promise<ScriptedGateway> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address: AddressInfo | string | null = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new ScriptedGateway(server, address.port);
  }

  /**
   * The next messages are answered with an error, or accepted and then answered with a broken connection or with
   * nothing.
   */
  failNext(...troubles: Trouble[]): void {
    this.#troubles.push(...troubles);
  }

  turn(index: number): ScriptedTurn {
    const turn = this.turns[index];
    if (turn === undefined) throw new Error(`there are ${String(this.turns.length)} turns`);
    return turn;
  }

  /** A turn that was not asked for on this page. */
  addTurn(contactId: string, message: string | null = null): ScriptedTurn {
    const turn = new ScriptedTurn(`t${String(this.turns.length + 1)}`, { contactId, message });
    this.turns.push(turn);
    return turn;
  }

  sent(method: string, path: RegExp): SeenRequest[] {
    return this.requests.filter((request) => request.method === method && path.test(request.path));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(request);
    const { pathname: path, searchParams: query } = new URL(request.url ?? '', this.url);
    const method = request.method ?? '';
    const body: unknown = text.startsWith('{') ? JSON.parse(text) : text;
    this.requests.push({ method, path, headers: request.headers, body });
    const [, resource = '', id, part] = path.slice(1).split('/');
    if (method === 'POST' && /^(?:admin|cs)$/u.test(resource)) this.#startTurn(request, response, body);
    else if (resource === 'sessions') await this.#answerSession(response, id);
    else if (id === undefined) sendOr404(response, this.#listTurns(query));
    else this.#answerTurn(request, response, { id, part });
  }

  async #answerSession(response: ServerResponse, id: string | undefined): Promise<void> {
    const session = id === undefined ? [] : this.sessions.get(id);
    await this.heldSessions.shift();
    sendOr404(response, session);
  }

  #listTurns(query: URLSearchParams): unknown[] {
    const contactId = query.get('contact_id');
    const views = this.turns.map((turn) => turn.view()).filter((view) => contactId === null || view.contact_id === contactId);
    return views.toReversed().slice(0, Number(query.get('limit') ?? '20'));
  }

  #startTurn(request: IncomingMessage, response: ServerResponse, body: unknown): void {
    const trouble = this.#troubles.shift();
    if (trouble !== undefined && trouble !== 'cut' && trouble !== 'hang') {
      sendProblem(response, trouble);
      return;
    }
    const key = String(request.headers['idempotency-key']);
    const turn = this.#byIdempotencyKey.get(key) ?? this.addTurn(readContact(body), readMessage(body));
    this.#byIdempotencyKey.set(key, turn);
    if (trouble === 'cut') response.destroy();
    else if (trouble === undefined) turn.read(response, undefined);
  }

  #answerTurn(
    request: IncomingMessage,
    response: ServerResponse,
    { id, part }: { readonly id: string; readonly part: string | undefined },
  ): void {
    const turn = this.turns.find((other) => other.id === id);
    if (turn === undefined) {
      sendProblem(response, 'not_found');
      return;
    }
    if (part === 'cancel') {
      response.writeHead(202, { 'content-type': 'application/json' }).end(JSON.stringify(turn.view()));
      if (turn.status === 'running') turn.finish('cancelled');
      return;
    }
    const after = request.headers['last-event-id'];
    turn.read(response, this.replaysAll || after === undefined ? undefined : String(after));
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  return (await request.toArray()).join('');
}

function readContact(body: unknown): string {
  const named = typeof body === 'object' && body !== null && 'contact_id' in body ? body.contact_id : undefined;
  return typeof named === 'string' ? named : 'c'.repeat(32);
}

function readMessage(body: unknown): string | null {
  const message = typeof body === 'object' && body !== null && 'message' in body ? body.message : undefined;
  return typeof message === 'string' ? message : null;
}

function sendOr404(response: ServerResponse, body: unknown): void {
  if (body === 'hidden') {
    sendProblem(response, 'scope_required');
    return;
  }
  if (body === undefined) sendProblem(response, 'not_found');
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function sendProblem(response: ServerResponse, code: ErrorCode): void {
  const { status, title } = errorCodes[code];
  const problem = { type: 'about:blank', title, status, detail: title, code, requestId: 'r' };
  response.writeHead(status, { 'content-type': 'application/problem+json' }).end(JSON.stringify(problem));
}

/** A stored conversation with one ended turn. */
export function storedSession(id: string, turnId: string, [question, reply]: readonly [string, string]): SessionPage {
  const messages: SessionPage['messages'] = [
    { id: `${turnId}u`, turnId, at, role: 'user', text: question },
    { id: `${turnId}a`, turnId, at, role: 'assistant', text: reply },
  ];
  const origin = 'user' as const;
  const facts = { id, createdAt: at, updatedAt: at, agent: 'admin', channel: 'web', origin, title: question } as const;
  return { ...facts, messageCount: 2, messages, turns: [], before: null };
}
