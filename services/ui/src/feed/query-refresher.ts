import type { FeedEvent } from '@concierge/client';
import { routes, type Route } from '@concierge/contract';

/** The beginning of the keys of queries: the chat's have names of their own, all others begin with the route's id. */
export type QueryPrefix = readonly (string | Readonly<Record<string, string>>)[];

const prefixes = (...listed: readonly Route[]): readonly QueryPrefix[] => listed.map(({ id }) => [id]);

/** The chat's own list, and that of the pages. */
const sessions: readonly QueryPrefix[] = [['sessions'], ...prefixes(routes.listSessions)];
const handoffs: readonly QueryPrefix[] = [['handoffs'], ...prefixes(routes.listHandoffs)];
const schedules = prefixes(routes.listSchedules, routes.getSchedule, routes.listScheduleRuns);
/** How a turn was delivered stands with it. */
const deliveries = prefixes(
  routes.getTurn,
  routes.getTurnTrace,
  routes.listScheduleRuns,
  routes.listChannels,
  routes.getChannel,
  routes.listDeliveries,
);
/** What the end of a turn changes, beside the turn itself. */
const turnEnd = [...sessions, ...prefixes(routes.getUsage, routes.listScheduleRuns)];
/** One conversation as the inbox shows it. */
const conversation = prefixes(routes.getSession, routes.getHandoff, routes.getSessionContact, routes.getSessionStaff);
const ofConversation = (id: string, ...listed: readonly Route[]): readonly QueryPrefix[] => listed.map((route) => [route.id, { id }]);
const everything: readonly QueryPrefix[] = [
  ...new Map(
    [...turnEnd, ...handoffs, ['handoff'], ['name'], ...conversation, ...schedules, ...deliveries, ...prefixes(routes.listTurns)].map(
      (prefix) => [JSON.stringify(prefix), prefix],
    ),
  ).values(),
];

/** The queries whose answers may be others after a change. */
export function listTouched(event: FeedEvent): readonly QueryPrefix[] {
  switch (event.kind) {
    case 'again':
      return everything;
    case 'turn': {
      const { id, contact_id: contactId, status } = event;
      const turn = [...prefixes(routes.listTurns), [routes.getTurn.id, { id }], [routes.getTurnTrace.id, { id }]];
      // While staff has the conversation, what the contact has written is shown with who has it.
      const shown = contactId === undefined ? [] : [['handoff', contactId]];
      const ended =
        contactId === undefined ? turnEnd : [...turnEnd, ...ofConversation(contactId, routes.getSession, routes.getSessionContact)];
      return [...turn, ...shown, ...(status === 'waiting' || status === 'running' ? [] : ended)];
    }
    case 'session':
      return [
        ...sessions,
        ...handoffs,
        ['name', event.id],
        ...ofConversation(event.id, routes.getSession),
        ...prefixes(routes.listTurns, routes.getUsage, routes.listScheduleRuns),
      ];
    case 'handoff':
      return [...handoffs, ['handoff', event.id], ...ofConversation(event.id, routes.getHandoff, routes.getSessionStaff), ...sessions];
    case 'schedule':
      return schedules;
    case 'delivery':
      return deliveries;
  }
}

export interface QueryRefresherOptions {
  /** Asks for queries again; does not reject. */
  readonly refresh: (prefix: QueryPrefix) => Promise<void>;
  /** Resolves when the same queries may be asked for once more. */
  readonly rest: () => Promise<void>;
}

/**
 * Asks again for what has changed: at once, and for what changes meanwhile once more after a rest. Of the same queries
 * one request is under way at a time, so that an answer from before a change is never the last one.
 */
export class QueryRefresher {
  readonly #options: QueryRefresherOptions;
  /** What is asked for, or rests; true: to be asked for again. */
  readonly #busy = new Map<string, boolean>();

  constructor(options: QueryRefresherOptions) {
    this.#options = options;
  }

  touch(event: FeedEvent): void {
    this.refresh(listTouched(event));
  }

  refresh(prefixes: readonly QueryPrefix[]): void {
    for (const prefix of prefixes) {
      const name = JSON.stringify(prefix);
      if (this.#busy.has(name)) this.#busy.set(name, true);
      else void this.#refresh(name, prefix);
    }
  }

  async #refresh(name: string, prefix: QueryPrefix): Promise<void> {
    do {
      this.#busy.set(name, false);
      await this.#options.refresh(prefix);
      await this.#options.rest();
    } while (this.#busy.get(name) === true);
    this.#busy.delete(name);
  }
}
