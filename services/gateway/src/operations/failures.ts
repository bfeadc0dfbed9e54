import type { FailedTurns } from '@concierge/core/failed-turns';
import type { OperatedTurns } from '@concierge/core/operated-turns';
import type { DeadLetters } from '@concierge/core/stuck-deliveries';
import { AppError, routes } from '@concierge/contract';
import type { Turns } from '@concierge/turn';
import { pageLink, type Handlers } from '../http/call.ts';

export interface FailureOptions {
  readonly failedTurns: FailedTurns;
  readonly operatedTurns: OperatedTurns;
  readonly turns: Pick<Turns, 'findTenant'>;
}

/** Failed turns of all tenants, and what operators do with single turns. */
export function failureHandlers({
  failedTurns,
  operatedTurns,
  turns,
}: FailureOptions): Pick<
  Handlers,
  'listFailures' | 'retryTurns' | 'retryOperatedTurn' | 'listOperatedTurns' | 'getOperatedTurnTrace' | 'cancelOperatedTurn' | 'cancelTurns'
> {
  return {
    listFailures: async ({ query: { cursor, ...filter } }) => {
      const { groups, nextCursor } = await failedTurns.list(filter, cursor);
      return { kind: 'answer', status: 200, json: groups, headers: pageLink(routes.listFailures.path, filter, nextCursor) };
    },
    retryTurns: async ({ body, requestId }) => ({ kind: 'answer', status: 200, json: await failedTurns.retry(body, { requestId }) }),
    retryOperatedTurn: async ({ params: { id: turnId }, query: { tenant: tenantId }, requestId }) => ({
      kind: 'answer',
      status: 202,
      json: await failedTurns.retryOne({ tenantId, turnId }, { requestId }),
    }),
    listOperatedTurns: async ({ query }) => {
      const { items, nextCursor } = await operatedTurns.list(query);
      const { cursor: _cursor, ...filter } = query;
      return { kind: 'answer', status: 200, json: items, headers: pageLink(routes.listOperatedTurns.path, filter, nextCursor) };
    },
    getOperatedTurnTrace: async ({ params: { id }, query: { tenant } }) => {
      const json = await operatedTurns.trace({ tenantId: tenant, turnId: id });
      return { kind: 'answer', status: 200, json };
    },
    cancelOperatedTurn: async ({ params: { id: turnId }, query, requestId }) => {
      const tenantId = query.tenant ?? (await turns.findTenant(turnId));
      if (tenantId === undefined) throw new AppError('not_found', 'There is no such turn under way; name its tenant.');
      const json = await failedTurns.cancel({ tenantId, turnId, reason: query.reason }, { requestId });
      return { kind: 'answer', status: 202, json };
    },
    cancelTurns: async ({ body, requestId }) => ({ kind: 'answer', status: 200, json: await failedTurns.cancelAll(body, { requestId }) }),
  };
}

type StuckHandlers = Pick<Handlers, 'listStuckDeliveries' | 'redriveDeliveries' | 'redriveOperatedDelivery'>;

/** Messages and webhook events of all tenants that have not arrived. Workers send what is taken up, within seconds. */
export function stuckDeliveryHandlers({ deadLetters }: { readonly deadLetters: DeadLetters }): StuckHandlers {
  return {
    listStuckDeliveries: async ({ query }) => {
      const { items, nextCursor } = await deadLetters.list(query);
      const { tenant, limit } = query;
      const headers = pageLink(routes.listStuckDeliveries.path, { tenant, limit }, nextCursor);
      return { kind: 'answer', status: 200, json: items, headers };
    },
    redriveDeliveries: async ({ body, requestId }) => ({
      kind: 'answer',
      status: 200,
      json: await deadLetters.redriveSome(body, { requestId }),
    }),
    redriveOperatedDelivery: async ({ params: { id }, query: { tenant: tenantId }, requestId }) => {
      await deadLetters.redriveOne({ tenantId, id }, { requestId });
      return { kind: 'answer', status: 202, json: { tenantId, id } };
    },
  };
}
