import { setTimeout as wait } from 'node:timers/promises';
import type { Evidence } from '../audit/evidence.ts';
import { noteRefusal } from '../refusals.ts';
import { toLoadMessage } from '../load/request.ts';

/** A request that changes nothing, again and again; every answer but the wanted one and "later" is put on record. */
export interface Probe {
  readonly gateways: readonly string[];
  readonly apiKey: string;
  readonly evidence: Evidence;
  readonly path: string;
  readonly body?: () => object;
  /** A client without an answer within this time repeats the request. */
  readonly timeoutMs?: number;
  /** Called for each request that was put off. */
  readonly onLater?: () => void;
}

const PAUSE_MS = 5;
/** Clients that wait for a whole answer at any time. */
const WAITING = 20;
const REQUEST_TIMEOUT_MS = 60_000;

/** @returns how many were answered as they should be, and how many were put off */
export async function probe(
  { gateways, apiKey, evidence, path, body, timeoutMs = REQUEST_TIMEOUT_MS, onLater }: Probe,
  isOver: AbortSignal,
): Promise<{ readonly answered: number; readonly later: number }> {
  let answered = 0;
  let later = 0;
  for (let turn = 0; !isOver.aborted; turn += 1) {
    const gateway = gateways[turn % gateways.length] ?? '';
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', accept: 'application/json' };
    const asked = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body()) };
    const signal = AbortSignal.any([isOver, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(`${gateway}${path}`, { ...asked, signal }).catch(() => undefined);
    if (response?.ok === true) {
      await response.text().catch(() => undefined);
      answered += 1;
    } else if (response !== undefined) {
      await noteRefusal({ evidence, marker: `probe of ${path}` }, { gateway, response, method: body === undefined ? 'GET' : 'POST' });
      later += 1;
      onLater?.();
    }
    await wait(PAUSE_MS);
  }
  return { answered, later };
}

/** What is asked while connections die: everything that looks something up in Redis or waits for it. */
export function probedRequests({ adminKey, csKey, session }: ProbedTenant): readonly Pick<Probe, 'apiKey' | 'path' | 'body'>[] {
  const { id, turnId, sender } = session;
  const messages = [{ role: 'user', content: 'hello' }];
  let asked = 0;
  const unhurried = (): object => {
    asked += 1;
    return { message: toLoadMessage({ marker: `mk-probe-0-${String(asked)}`, kind: 'say', chunks: 10, delayMs: 100 }) };
  };
  return [
    // The end of a turn is what comes while the gateway that waits for it is cut off.
    ...Array.from({ length: WAITING }, () => ({ apiKey: csKey, path: '/api/cs', body: unhurried })),
    { apiKey: adminKey, path: '/api/turns?limit=5' },
    { apiKey: adminKey, path: `/api/turns/${turnId}/cancel`, body: () => ({}) },
    { apiKey: adminKey, path: `/api/sessions/${id}` },
    { apiKey: adminKey, path: '/api/sessions?limit=5' },
    { apiKey: adminKey, path: `/api/turns/${turnId}` },
    { apiKey: csKey, path: '/v1/chat/completions', body: () => ({ model: 'cs', messages }) },
    { apiKey: adminKey, path: '/v1/chat/completions', body: () => ({ model: 'admin', messages }) },
    { apiKey: csKey, path: '/v1/responses', body: () => ({ model: 'cs', input: 'hello', user: 'probe' }) },
    { apiKey: csKey, path: '/api/cs', body: () => ({ message: 'hello', sender, contact_id: id }) },
    { apiKey: csKey, path: '/api/cs', body: () => ({ message: 'hello' }) },
  ];
}

export interface ProbedTenant {
  readonly adminKey: string;
  readonly csKey: string;
  /** A session with an answered turn. */
  readonly session: { readonly id: string; readonly turnId: string; readonly sender: string };
}
