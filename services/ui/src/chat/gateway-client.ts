import { ConciergeClient, type ClientRequest, type ConciergeError } from '@concierge/client';
import {
  type ChannelName,
  AgentView,
  HandoffState,
  HandoffView,
  PersonMessageReceipt,
  SessionListItem,
  SessionPage,
  SessionView,
  TenantView,
  TurnView,
  WaitingHandoff,
  type SessionOrigin,
} from '@concierge/contract';
import { z } from 'zod';
import { readJson, readNextCursor } from '../json-client.ts';
import { SIGN_IN_HEADER } from '../signed-in.ts';

export interface GatewayClientOptions {
  /** Undefined: the browser's cookie has it. */
  readonly key: string | undefined;
  /** Of the cookie; null where there is none, or where the console does not name it. */
  readonly signInId?: string | null;
  /** Origin of the gateway; empty in the browser, where the console forwards. */
  readonly base?: string;
  /** Called with every 401: the key is not (or no longer) good. */
  readonly onKeyRefused?: (failure: ConciergeError) => void;
}

export interface SessionsPage {
  readonly items: readonly SessionListItem[];
  readonly nextCursor: string | null;
}

/**
 * A value that may change without the user's doing. `isCounted`: asking often would use up what the tenant may ask in
 * an hour.
 */
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
  readonly channel?: ChannelName | null;
  /** Those that one of these began; null: all. */
  readonly origin: readonly SessionOrigin[] | null;
  /** Words of the title, the last message or the contact. */
  readonly words?: string;
  readonly isPinned?: boolean;
  readonly cursor: string | null;
  readonly limit: number;
}

/**
 * The gateway's interface as this page uses it. Every method rejects with a ConciergeError, also when there was no
 * answer.
 */
export class GatewayClient extends ConciergeClient {
  #isCounted = false;

  constructor({ key, signInId = null, base, onKeyRefused }: GatewayClientOptions) {
    const onError = (failure: ConciergeError): void => {
      if (failure.status === 401) onKeyRefused?.(failure);
    };
    super({ apiKey: key, baseUrl: base, onError, fetch: signInId === null ? undefined : fetchFor(signInId) });
  }

  /** Whether asking often would use up what the tenant may ask in an hour, by the last answer. */
  get isCounted(): boolean {
    return this.#isCounted;
  }

  override async request(path: string, init?: ClientRequest): Promise<Response> {
    const response = await super.request(path, init);
    this.#isCounted = isCounted(response);
    return response;
  }

  async listSessions(asked: SessionsQuery, signal?: AbortSignal): Promise<SessionsPage> {
    const { agent, channel = null, origin, words = '', isPinned, cursor, limit } = asked;
    const query = new URLSearchParams({ limit: String(limit) });
    if (agent !== null) query.set('agent', agent);
    if (channel !== null) query.set('channel', channel);
    if (origin !== null) query.set('origin', origin.join(','));
    if (words !== '') query.set('q', words);
    if (isPinned !== undefined) query.set('pinned', String(isPinned));
    if (cursor !== null) query.set('cursor', cursor);
    const response = await this.request(`/api/sessions?${query.toString()}`, signal === undefined ? {} : { signal });
    return { items: await readJson(response, z.array(SessionListItem)), nextCursor: readNextCursor(response.headers.get('link')) };
  }

  /** All agents of the tenant, those with a problem too. */
  async listAgents(signal: AbortSignal): Promise<AgentView[]> {
    return readJson(await this.request('/api/agents', { signal }), z.array(AgentView));
  }

  /** The settings of the key's tenant. */
  async readTenant(signal: AbortSignal): Promise<TenantView> {
    return readJson(await this.request('/api/tenant', { signal }), TenantView);
  }

  /** The last turns of a conversation, or those before a page that was read. */
  async findSession(id: string, { limit, before }: { limit: number; before?: string }): Promise<SessionPage> {
    const query = new URLSearchParams({ limit: String(limit), ...(before !== undefined && { before }) });
    return readJson(await this.request(`${sessionPath(id)}?${query.toString()}`), SessionPage);
  }

  /** Conversations that wait for staff, the longest wait first. */
  async listHandoffs(limit: number, signal: AbortSignal): Promise<Watched<WaitingList>> {
    const response = await this.request(`/api/handoffs?limit=${String(limit)}`, { signal });
    const items = await readJson(response, z.array(WaitingHandoff));
    return { value: { items, total: Number(response.headers.get('x-total-count') ?? items.length) }, isCounted: isCounted(response) };
  }

  async findHandoff(sessionId: string, signal: AbortSignal): Promise<Watched<HandoffState>> {
    const response = await this.request(`${sessionPath(sessionId)}/handoff`, { signal });
    return { value: await readJson(response, HandoffState), isCounted: isCounted(response) };
  }

  /** The caller takes the conversation over: no staff is notified. */
  async takeOver(sessionId: string): Promise<HandoffView> {
    return readJson(await this.#post(`${sessionPath(sessionId)}/handoff`, { notify: false }), HandoffView);
  }

  async giveBack(sessionId: string): Promise<HandoffState> {
    return readJson(await this.#post(`${sessionPath(sessionId)}/resume`, {}), HandoffState);
  }

  /** Sends a staff message in the agent's place. @returns the turn's id */
  async answerAsPerson(sessionId: string, { message, idempotencyKey }: { message: string; idempotencyKey: string }): Promise<string> {
    const response = await this.#post(`${sessionPath(sessionId)}/messages`, { message }, { 'idempotency-key': idempotencyKey });
    return (await readJson(response, PersonMessageReceipt)).turnId;
  }

  /** All of a conversation, as it is saved elsewhere. */
  async readWholeSession(id: string): Promise<SessionView> {
    return readJson(await this.request(sessionPath(id)), SessionView);
  }

  /** Begins another conversation with the messages up to a turn. @returns its id */
  async forkSession(id: string, from: { readonly turnId: string; readonly includesTurn: boolean }): Promise<string> {
    return (await readJson(await this.#post(`${sessionPath(id)}/fork`, from), SessionView)).id;
  }

  /** `title` null: the conversation has its own name again. */
  async labelSession(id: string, label: { readonly title: string | null; readonly pinned: boolean }): Promise<void> {
    const init = { method: 'PATCH', headers: { 'content-type': 'application/json' }, body: JSON.stringify(label) };
    await this.request(sessionPath(id), init);
  }

  async deleteSession(id: string): Promise<void> {
    await this.request(`/api/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  /** Takes a turn back. @returns false where it had ended before: what it has brought stays */
  async takeBack(turnId: string): Promise<boolean> {
    // It goes out even if the page is left at once.
    const response = await this.request(`/api/turns/${encodeURIComponent(turnId)}/cancel`, { method: 'POST', keepalive: true });
    const { status } = await readJson(response, TurnView);
    return status === 'waiting' || status === 'running';
  }

  /** The bytes of a file that was sent. */
  async readUpload(id: string): Promise<Blob> {
    return (await this.request(`/api/uploads/${encodeURIComponent(id)}`)).blob();
  }

  /** The newest turns of a conversation, whatever became of them. */
  async listTurns(contactId: string, limit: number): Promise<TurnView[]> {
    const query = new URLSearchParams({ contact_id: contactId, limit: String(limit) });
    return readJson(await this.request(`/api/turns?${query.toString()}`), z.array(TurnView));
  }

  async #post(path: string, body: Readonly<Record<string, unknown>>, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    return this.request(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) });
  }
}

/** Each request, and each repetition of one, says which sign-in it is of. */
function fetchFor(signInId: string): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set(SIGN_IN_HEADER, signInId);
    return fetch(input, { ...init, headers });
  };
}

function sessionPath(id: string): string {
  return `/api/sessions/${encodeURIComponent(id)}`;
}

/** True when the answer carries a rate limit: the tenant's requests are counted. */
function isCounted(response: Response): boolean {
  return response.headers.has('ratelimit-policy');
}
