import {
  AgentView,
  HandoffState,
  HandoffView,
  PersonMessageReceipt,
  SessionListItem,
  SessionView,
  TenantView,
  TurnView,
  UploadRef,
  WaitingHandoff,
  type SessionOrigin,
} from '@concierge/contract';
import { z } from 'zod';
import { ChatFailure, failureOf, toFailure } from './chat-failure.ts';

const REQUEST_TIMEOUT_MS = 30_000;
const UPLOAD_TIMEOUT_MS = 180_000;

export interface GatewayClientOptions {
  readonly key: string;
  readonly fetch?: typeof globalThis.fetch;
  /** Origin of the gateway; empty in the browser, where the console forwards. */
  readonly base?: string;
  /** The key is not (or no longer) good: every answer of 401 tells. */
  readonly onKeyRefused?: (failure: ChatFailure) => void;
}

export interface SessionsPage {
  readonly items: readonly SessionListItem[];
  readonly nextCursor: string | null;
}

/** What may change while nobody touches the page. `isCounted`: asking often would use up what the tenant may ask in an hour. */
export interface Watched<Value> {
  readonly value: Value;
  readonly isCounted: boolean;
}

export interface WaitingList {
  readonly items: readonly WaitingHandoff[];
  readonly total: number;
}

export interface SessionsQuery {
  readonly agent: string | null;
  /** Those that one of these began; null: all. */
  readonly origin: readonly SessionOrigin[] | null;
  readonly cursor: string | null;
  readonly limit: number;
}

export interface NewTurnRequest {
  readonly agent: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Makes sending again the same turn. */
  readonly idempotencyKey: string;
}

interface Call extends RequestInit {
  readonly timeoutMs?: number;
}

/** The gateway's interface as this page uses it. Every method rejects with a ChatFailure, also when there was no answer. */
export class GatewayClient {
  readonly #options: GatewayClientOptions;

  constructor(options: GatewayClientOptions) {
    this.#options = options;
  }

  async listSessions({ agent, origin, cursor, limit }: SessionsQuery, signal?: AbortSignal): Promise<SessionsPage> {
    const query = new URLSearchParams({ limit: String(limit) });
    if (agent !== null) query.set('agent', agent);
    if (origin !== null) query.set('origin', origin.join(','));
    if (cursor !== null) query.set('cursor', cursor);
    const response = await this.#call(`/api/sessions?${query.toString()}`, signal === undefined ? {} : { signal });
    return { items: await read(response, z.array(SessionListItem)), nextCursor: nextCursorOf(response.headers.get('link')) };
  }

  /** All agents of the tenant, those with a problem too. */
  async listAgents(signal: AbortSignal): Promise<AgentView[]> {
    return read(await this.#call('/api/agents', { signal }), z.array(AgentView));
  }

  /** The settings of the key's tenant. */
  async readTenant(signal: AbortSignal): Promise<TenantView> {
    return read(await this.#call('/api/tenant', { signal }), TenantView);
  }

  async findSession(id: string): Promise<SessionView> {
    return read(await this.#call(`/api/sessions/${encodeURIComponent(id)}`), SessionView);
  }

  /** Conversations that wait for a person, the longest wait first. */
  async listHandoffs(limit: number, signal: AbortSignal): Promise<Watched<WaitingList>> {
    const response = await this.#call(`/api/handoffs?limit=${String(limit)}`, { signal });
    const items = await read(response, z.array(WaitingHandoff));
    return { value: { items, total: Number(response.headers.get('x-total-count') ?? items.length) }, isCounted: isCounted(response) };
  }

  async findHandoff(sessionId: string, signal: AbortSignal): Promise<Watched<HandoffState>> {
    const response = await this.#call(`${sessionPath(sessionId)}/handoff`, { signal });
    return { value: await read(response, HandoffState), isCounted: isCounted(response) };
  }

  /** Whoever asks is the person who takes it: nobody is called. */
  async takeOver(sessionId: string): Promise<HandoffView> {
    return read(await this.#post(`${sessionPath(sessionId)}/handoff`, { notify: false }), HandoffView);
  }

  async giveBack(sessionId: string): Promise<HandoffState> {
    return read(await this.#post(`${sessionPath(sessionId)}/resume`, {}), HandoffState);
  }

  /** Says something in the agent's place. @returns the turn's id */
  async answerAsPerson(sessionId: string, { message, idempotencyKey }: { message: string; idempotencyKey: string }): Promise<string> {
    const response = await this.#post(`${sessionPath(sessionId)}/messages`, { message }, { 'idempotency-key': idempotencyKey });
    return (await read(response, PersonMessageReceipt)).turnId;
  }

  async deleteSession(id: string): Promise<void> {
    await this.#call(`/api/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  /** The newest turns of a conversation, whatever became of them. */
  async listTurns(contactId: string, limit: number): Promise<TurnView[]> {
    const query = new URLSearchParams({ contact_id: contactId, limit: String(limit) });
    return read(await this.#call(`/api/turns?${query.toString()}`), z.array(TurnView));
  }

  async cancelTurn(turnId: string): Promise<void> {
    await this.#call(`/api/turns/${encodeURIComponent(turnId)}/cancel`, { method: 'POST' });
  }

  async upload(file: File, signal: AbortSignal): Promise<UploadRef> {
    const form = new FormData();
    form.append('file', file, file.name);
    const response = await this.#call('/api/uploads', { method: 'POST', body: form, signal, timeoutMs: UPLOAD_TIMEOUT_MS });
    const [saved] = await read(response, z.array(UploadRef).min(1));
    if (saved === undefined)
      throw new ChatFailure('The service did not keep the file.', { status: response.status, code: 'unexpected_answer' });
    return saved;
  }

  /** Sends a message and answers with the event stream of its turn. */
  async startTurn({ agent, body, idempotencyKey }: NewTurnRequest, signal: AbortSignal): Promise<Response> {
    const path = agent === 'admin' || agent === 'cs' ? `/api/${agent}` : `/api/agents/${encodeURIComponent(agent)}`;
    const response = await this.#send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', 'idempotency-key': idempotencyKey },
      body: JSON.stringify(body),
      signal,
    });
    return assertEventStream(response);
  }

  /** The event stream of a turn, after the event with this id or from its start. */
  async resumeTurn(turnId: string, after: string | null, signal: AbortSignal): Promise<Response> {
    const response = await this.#send(`/api/turns/${encodeURIComponent(turnId)}/events`, {
      headers: { accept: 'text/event-stream', ...(after === null ? {} : { 'last-event-id': after }) },
      signal,
    });
    return assertEventStream(response);
  }

  async #post(path: string, body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.#call(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  }

  async #call(path: string, { timeoutMs = REQUEST_TIMEOUT_MS, signal, ...init }: Call = {}): Promise<Response> {
    const limit = AbortSignal.timeout(timeoutMs);
    return this.#send(path, { ...init, signal: signal == null ? limit : AbortSignal.any([signal, limit]) });
  }

  async #send(path: string, init: RequestInit): Promise<Response> {
    const { key, base = '', onKeyRefused, fetch = globalThis.fetch } = this.#options;
    const headers = new Headers(init.headers);
    headers.set('x-api-key', key);
    const response = await fetch(`${base}${path}`, { ...init, headers, cache: 'no-store' }).catch((error: unknown) => {
      throw toFailure(error);
    });
    if (response.ok) return response;
    const failure = await failureOf(response);
    if (failure.status === 401) onKeyRefused?.(failure);
    throw failure;
  }
}

function sessionPath(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

/** Said on every answer to a tenant that may ask only so often. */
function isCounted(response: Response): boolean {
  return response.headers.has('ratelimit-policy');
}

async function read<Schema extends z.ZodType>(response: Response, schema: Schema): Promise<z.output<Schema>> {
  const parsed = schema.safeParse(await response.json().catch(() => undefined));
  if (parsed.success) return parsed.data;
  throw new ChatFailure('The service answered something that this page does not understand. Reload the page.', {
    status: response.status,
    code: 'unexpected_answer',
    cause: parsed.error,
  });
}

function assertEventStream(response: Response): Response {
  if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) return response;
  throw new ChatFailure('The service did not answer with a stream of events.', { status: response.status, code: 'unexpected_answer' });
}

/** The cursor of the page after this one, from the `Link` header (RFC 8288). */
export function nextCursorOf(link: string | null): string | null {
  const next = (link ?? '').split(/,\s*(?=<)/u).find((part) => /;\s*rel="?next"?/u.test(part));
  const address = next === undefined ? undefined : /<(?<address>[^<>]*)>/u.exec(next)?.groups?.['address'];
  return address === undefined ? null : new URL(address, 'http://console').searchParams.get('cursor');
}
