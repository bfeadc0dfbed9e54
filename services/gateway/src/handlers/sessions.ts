import {
  AppError,
  routes,
  builtInAgent,
  type SessionLabel,
  type SessionListItem,
  type SessionState,
  type SessionView,
} from '@concierge/contract';
import type { IndexedSession, SessionsQuery, SomeIds } from '@concierge/index';
import { forkSession, reportExpired, type TenantScope } from '@concierge/tenant';
import type { z } from 'zod';
import { pageLink, type Handlers } from '../http/call.ts';

/** Conversations that are handed over, of which a filter by state knows. */
const HANDOFFS_ASKED_MAX = 5000;

const noSession = (): AppError => new AppError('not_found', 'There is no such session.');

type SessionHandlers = Pick<
  Handlers,
  'listSessions' | 'getSession' | 'deleteSession' | 'forkSession' | 'labelSession' | 'previewRetention'
>;

export function sessionHandlers(): SessionHandlers {
  return {
    previewRetention: async ({ caller: { scope }, query }) => ({ kind: 'answer', status: 200, json: await reportExpired(scope, query) }),
    listSessions: async ({ caller: { scope }, query }) => {
      const { items, nextCursor } = await scope.index.listSessions(await toIndexQuery(scope, query));
      const labels = await readLabels(scope, items);
      if (query.agent !== undefined && items.length === 0) await assertKnown(scope, query.agent);
      const { cursor: _here, origin, contacts, ...asked } = query;
      const again = { ...asked, origin: origin?.join(','), contacts: contacts ? 'true' : undefined };
      const headers = pageLink(routes.listSessions.path, again, nextCursor);
      const json = (await showSessions(scope, items)).map((item) => ({ ...item, ...showLabel(item, labels.get(item.id)) }));
      return { kind: 'answer', status: 200, json, headers };
    },
    getSession: async ({ caller: { scope }, params, query: { limit, before } }) => {
      const session = await (limit === 0 ? scope.sessions.view(params.id) : scope.sessions.viewPage(params.id, { limit, before }));
      if (session === undefined) throw noSession();
      return { kind: 'answer', status: 200, json: await withOwnName(scope, session) };
    },
    deleteSession: async ({ caller, params }) => {
      await removeSession(caller.scope, params.id);
      return { kind: 'answer', status: 204 };
    },
    forkSession: async ({ caller: { scope }, params, body }) => {
      const { id } = await forkSession(scope, params.id, body);
      const session = await scope.sessions.view(id);
      if (session === undefined) throw noSession();
      return { kind: 'answer', status: 201, json: session };
    },
    labelSession: async ({ caller: { scope }, params: { id }, body }) => {
      const session = await scope.sessions.load(id);
      if (session === undefined) throw noSession();
      const label = await scope.labels.change(id, body);
      return { kind: 'answer', status: 200, json: { id, ...showLabel(session, label) } };
    },
  };
}

type Labels = ReadonlyMap<string, SessionLabel>;

const noLabels: Labels = new Map();

/** Of all conversations: only where a search or a filter asks for them. */
async function readAllLabels(scope: TenantScope): Promise<Labels> {
  return (await scope.uses('sessions/.labels')) ? scope.labels.all() : noLabels;
}

/** Of the rows of a page. */
async function readLabels(scope: TenantScope, items: readonly { readonly id: string }[]): Promise<Labels> {
  if (!(await scope.uses('sessions/.labels'))) return noLabels;
  const found = await Promise.all(items.map(async ({ id }) => [id, await scope.labels.find(id)] as const));
  return new Map(found.flatMap(([id, label]) => (label === undefined ? [] : [[id, label]])));
}

function showLabel({ title }: { readonly title: string }, label: SessionLabel | undefined): Pick<SessionListItem, 'title' | 'pinned'> {
  return { title: label?.title ?? title, pinned: label?.pinned ?? false };
}

/** A conversation under the name that the owner gave it. */
async function withOwnName<View extends SessionView>(scope: TenantScope, session: View): Promise<View> {
  const label = (await scope.uses('sessions/.labels')) ? await scope.labels.find(session.id) : undefined;
  return label?.title == null ? session : { ...session, title: label.title };
}

/** Conversations whose own name has these words, in any case. */
function findNamed(labels: Labels, words: string): string[] {
  const wanted = words.toLocaleLowerCase();
  return [...labels].filter(([, { title }]) => title?.toLocaleLowerCase().includes(wanted) === true).map(([id]) => id);
}

function toPinnedQuery(labels: Labels, pinned: 'true' | 'false' | undefined): SomeIds[] {
  if (pinned === undefined) return [];
  const ids = [...labels].filter(([, label]) => label.pinned).map(([id]) => id);
  return [pinned === 'true' ? { only: ids } : { without: ids }];
}

/** Ids of all conversations that are handed over: read only where a filter asks for them. */
async function listHandedOver(scope: TenantScope): Promise<string[]> {
  const { handoffs, broken } = await scope.handoffs.paused();
  return [...handoffs.map(({ sessionId }) => sessionId), ...broken].slice(0, HANDOFFS_ASKED_MAX);
}

type Asked = Pick<z.output<(typeof routes)['listSessions']['query']>, 'q' | 'state' | 'pinned' | 'contacts' | 'assignee'> &
  Omit<SessionsQuery, 'ids'>;

async function toIndexQuery(scope: TenantScope, { q, state, pinned, contacts, assignee, ...query }: Asked): Promise<SessionsQuery> {
  const labels = q === undefined && pinned === undefined ? noLabels : await readAllLabels(scope);
  const words = q === undefined ? undefined : { text: q, ids: findNamed(labels, q) };
  const byState = state === undefined ? {} : toStateQuery(state, await listHandedOver(scope));
  const assigned = assignee === undefined ? [] : [{ only: await listAssignedTo(scope, assignee) }];
  const ids = [...(byState.ids ?? []), ...toPinnedQuery(labels, pinned), ...assigned];
  return { ...query, words, withContacts: contacts, ...byState, ids };
}

/** Conversations that a staff member looks after: read only where a filter asks for them. */
async function listAssignedTo(scope: TenantScope, name: string): Promise<string[]> {
  const assigned = [...(await scope.staffNotes.listAssigned()).values()];
  return assigned.flatMap((one) => (one.name === name ? [one.sessionId] : [])).slice(0, HANDOFFS_ASKED_MAX);
}

function toStateQuery(state: SessionState, ids: readonly string[]): Pick<SessionsQuery, 'ids' | 'lastFrom' | 'hasFailed'> {
  switch (state) {
    case 'agent':
    case 'failed':
      return { ids: [{ without: ids }], hasFailed: state === 'failed' };
    case 'waiting':
      return { ids: [{ only: ids }], lastFrom: ['contact', 'agent'] };
    case 'with_staff':
      return { ids: [{ only: ids }], lastFrom: ['person'] };
  }
}

/** With what is not in the index: three small files for each row of the page, at most. */
async function showSessions(scope: TenantScope, items: readonly IndexedSession[]): Promise<Omit<SessionListItem, 'pinned'>[]> {
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
