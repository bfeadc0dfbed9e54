import { AppError, routes, builtInAgent, type SessionListItem, type SessionState } from '@concierge/contract';
import type { IndexedSession, SessionsQuery } from '@concierge/index';
import { reportExpired, type TenantScope } from '@concierge/tenant';
import type { z } from 'zod';
import { pageLink, type Handlers } from '../http/call.ts';

/** Contacts by whose names a search finds conversations. */
const NAMES_FOUND_MAX = 1000;
/** Conversations that are handed over, of which a filter by state knows. */
const HANDOFFS_ASKED_MAX = 5000;

const noSession = (): AppError => new AppError('not_found', 'There is no such session.');

export function sessionHandlers(): Pick<Handlers, 'listSessions' | 'getSession' | 'deleteSession' | 'previewRetention'> {
  return {
    previewRetention: async ({ caller: { scope }, query }) => ({ kind: 'answer', status: 200, json: await reportExpired(scope, query) }),
    listSessions: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await scope.index.listSessions(await toIndexQuery(scope, query));
      if (query.agent !== undefined && items.length === 0) await assertKnown(scope, query.agent);
      const { cursor: _here, origin, contacts, ...asked } = query;
      const again = { ...asked, origin: origin?.join(','), contacts: contacts ? 'true' : undefined };
      const headers = pageLink(routes.listSessions.path, again, nextCursor);
      return { kind: 'answer', status: 200, json: await showSessions(scope, items), headers };
    },
    getSession: async ({ caller: { scope }, params, query: { limit, before } }) => {
      const session = await (limit === 0 ? scope.sessions.view(params.id) : scope.sessions.viewPage(params.id, { limit, before }));
      if (session === undefined) throw noSession();
      return { kind: 'answer', status: 200, json: session };
    },
    deleteSession: async ({ caller, params }) => {
      await removeSession(caller.scope, params.id);
      return { kind: 'answer', status: 204 };
    },
  };
}

/** Ids of all conversations that are handed over: read only where a filter asks for them. */
async function listHandedOver(scope: TenantScope): Promise<string[]> {
  const { handoffs, broken } = await scope.handoffs.paused();
  return [...handoffs.map(({ sessionId }) => sessionId), ...broken].slice(0, HANDOFFS_ASKED_MAX);
}

type Asked = Pick<z.output<(typeof routes)['listSessions']['query']>, 'q' | 'state' | 'contacts' | 'assignee'> & SessionsQuery;

async function toIndexQuery(scope: TenantScope, { q, state, contacts, assignee, ...query }: Asked): Promise<SessionsQuery> {
  const words = q === undefined ? undefined : { text: q, senders: await scope.contacts.findSenders(q, NAMES_FOUND_MAX) };
  const byState = state === undefined ? {} : toStateQuery(state, await listHandedOver(scope));
  const ids = assignee === undefined ? byState.ids : keepIds(await listAssignedTo(scope, assignee), byState.ids);
  return { ...query, words, withContacts: contacts, ...byState, ids };
}

/** Conversations that a staff member looks after: read only where a filter asks for them. */
async function listAssignedTo(scope: TenantScope, name: string): Promise<string[]> {
  const assigned = [...(await scope.staffNotes.listAssigned()).values()];
  return assigned.flatMap((one) => (one.name === name ? [one.sessionId] : [])).slice(0, HANDOFFS_ASKED_MAX);
}

/** Those that both let through. */
function keepIds(ids: readonly string[], others: SessionsQuery['ids']): SessionsQuery['ids'] {
  if (others === undefined) return { only: ids };
  const isKept = 'only' in others ? (id: string) => others.only.includes(id) : (id: string) => !others.without.includes(id);
  return { only: ids.filter(isKept) };
}

function toStateQuery(state: SessionState, ids: readonly string[]): Pick<SessionsQuery, 'ids' | 'lastFrom' | 'hasFailed'> {
  switch (state) {
    case 'agent':
    case 'failed':
      return { ids: { without: ids }, hasFailed: state === 'failed' };
    case 'waiting':
      return { ids: { only: ids }, lastFrom: ['contact', 'agent'] };
    case 'with_staff':
      return { ids: { only: ids }, lastFrom: ['person'] };
  }
}

/** With what is not in the index: three small files for each row of the page, at most. */
async function showSessions(scope: TenantScope, items: readonly IndexedSession[]): Promise<SessionListItem[]> {
  const handoffs = await findHandedOver(scope, items);
  const assigned = (await scope.uses('handoffs')) ? await scope.staffNotes.listAssigned(new Set(items.map(({ id }) => id))) : undefined;
  const names = await scope.contacts.readNames(items.flatMap(({ sender }) => (sender === null ? [] : [sender])));
  return items.map(({ hasFailed, ...item }) => ({
    ...item,
    contactName: item.sender === null ? null : (names.get(item.sender) ?? null),
    state: findState({ hasFailed, ...item }, handoffs),
    assignee: assigned?.get(item.id)?.name ?? null,
  }));
}

/** Those of the page alone. */
async function findHandedOver(scope: TenantScope, items: readonly IndexedSession[]): Promise<ReadonlySet<string>> {
  if (!(await scope.uses('handoffs'))) return new Set();
  const found = await Promise.all(items.map(async ({ id }) => ((await scope.handoffs.isPaused(id)) ? [id] : [])));
  return new Set(found.flat());
}

function findState({ id, hasFailed, lastMessage }: IndexedSession, handoffs: ReadonlySet<string>): SessionState {
  if (handoffs.has(id)) return lastMessage?.from === 'person' ? 'with_staff' : 'waiting';
  return hasFailed ? 'failed' : 'agent';
}

/** One of the names there are; an agent that is gone is known by its sessions. @throws AppError invalid_request */
async function assertKnown(scope: TenantScope, agent: string): Promise<void> {
  if (builtInAgent(agent) !== undefined || (await scope.agents.find(agent)) !== undefined) return;
  throw new AppError('invalid_request', undefined, { errors: [{ path: 'agent', message: 'is no agent of this tenant' }] });
}

async function removeSession(scope: TenantScope, sessionId: string): Promise<void> {
  if ((await scope.busySessions()).has(sessionId))
    throw new AppError('session_busy', 'A turn of this session waits or runs; cancel it first.', { retryAfterSeconds: 1 });
  if (!(await scope.removeSession(sessionId))) throw noSession();
}
