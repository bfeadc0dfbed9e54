import { routes, type Route } from '@concierge/contract';
import type { QueryPrefix } from './query-refresher.ts';

const prefixes = (...listed: readonly Route[]): readonly QueryPrefix[] => listed.map(({ id }) => [id]);

const now = prefixes(routes.getOverview, routes.listWaiting, routes.listWorkers);
const turns = prefixes(routes.listOperatedTurns, routes.getOperatedTurnTrace, routes.listFailures);
const deliveries = prefixes(routes.listStuckDeliveries, routes.getOperatedTurnTrace);
/** What no change of a tenant tells. */
const figures = prefixes(
  routes.getSeries,
  routes.getHealth,
  routes.listLogLines,
  routes.listOperatorAudit,
  routes.getOperatedTenant,
  routes.listWorkers,
  routes.getOverview,
  routes.listWaiting,
);

/** Kinds of events of `GET /ops/api/feed`, and the queries of the operators' pages whose answers may then be others. */
export const touchedForOperators = {
  turn: [...now, ...turns],
  session: turns,
  handoff: now,
  schedule: [],
  delivery: deliveries,
  figures,
  again: [...new Map([...now, ...turns, ...deliveries, ...figures].map((prefix) => [prefix[0], prefix])).values()],
} as const satisfies Readonly<Record<string, readonly QueryPrefix[]>>;
