import { z } from 'zod';
import { TenantId } from '../../tenants/tenant.ts';
import { AuditReason, CancelledTurns, CancelTurnsBody } from '../../turns/cancelled-turns.ts';
import { failureFilter, FailureGroup, TurnRetryBody, TurnsRetried } from '../../turns/failure.ts';
import { TurnTrace } from '../../turns/trace.ts';
import { OperatedTurn, TurnStatus, TurnView } from '../../turns/turn.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from '../route.ts';

const operator = { tag: 'operations', auth: 'operator', scopes: [] } as const;

export const listFailures = defineRoute({
  ...operator,
  id: 'listFailures',
  method: 'get',
  path: '/ops/api/failures',
  summary: 'Failed turns by cause: how many, whose, since when, and an example',
  description:
    'One page reads 200 tenants and 1,000 failed turns at most, the newest of a tenant first; add up the groups of all pages by code, model and message.',
  query: z.strictObject({ ...failureFilter, cursor: cursorParameter }),
  answers: { 200: { description: 'Causes, the most frequent first.', json: z.array(FailureGroup), headers: pageHeaders } },
  errors: ['not_found'],
});

export const retryTurns = defineRoute({
  ...operator,
  id: 'retryTurns',
  method: 'post',
  path: '/ops/api/turns/retry',
  summary: 'Accept once more what failed turns had asked, a few at a time',
  description:
    'A dry run unless `dryRun` is false: it says how many and whose. One call looks at 100 failed turns at most and accepts `limit` of them; go on with `nextCursor`, and stop by not asking again. A turn is accepted again once, however often it is asked for.',
  body: { kind: 'json', schema: TurnRetryBody },
  answers: { 200: { description: 'What was, or would be, accepted again, and what not.', json: TurnsRetried } },
  errors: ['not_found', 'overloaded'],
});

export const retryOperatedTurn = defineRoute({
  ...operator,
  id: 'retryOperatedTurn',
  method: 'post',
  path: '/ops/api/turns/{id}/retry',
  summary: 'Accept once more what one failed or cancelled turn had asked',
  description: 'As `POST /api/turns/{id}/retry`: once, and only what a client asked for.',
  params: z.object({ id: z.string().min(1).max(128) }),
  query: z.strictObject({ tenant: TenantId.meta({ description: 'Whose turn it is.' }) }),
  answers: { 202: { description: 'The new turn.', json: TurnView } },
  errors: ['not_found', 'conflict', 'session_busy', 'too_many_waiting', 'overloaded'],
});

export const listOperatedTurns = defineRoute({
  ...operator,
  id: 'listOperatedTurns',
  method: 'get',
  path: '/ops/api/turns',
  summary: 'Turns of all tenants, by state, code of the error, tenant or id',
  description:
    'Tenants by id, and of each the last accepted turn first. One page reads 200 tenants at most: it may be short, or empty, and still be followed by another.',
  query: z.strictObject({
    tenant: TenantId.optional(),
    status: TurnStatus.optional(),
    code: failureFilter.code,
    id: z.string().min(1).max(128).optional().meta({ description: 'Of a turn or of a conversation.' }),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'Turns, without their steps.', json: z.array(OperatedTurn), headers: pageHeaders } },
  errors: ['not_found'],
});

export const getOperatedTurnTrace = defineRoute({
  ...operator,
  id: 'getOperatedTurnTrace',
  method: 'get',
  path: '/ops/api/turns/{id}/trace',
  summary: 'The life of a turn, without a word of its texts',
  description: 'As `GET /api/turns/{id}/trace`.',
  params: z.object({ id: z.string().min(1).max(128) }),
  query: z.strictObject({ tenant: TenantId.meta({ description: 'Whose turn it is.' }) }),
  answers: { 200: { description: 'The trace.', json: TurnTrace } },
  errors: ['not_found'],
});

export const cancelOperatedTurn = defineRoute({
  ...operator,
  id: 'cancelOperatedTurn',
  method: 'post',
  path: '/ops/api/turns/{id}/cancel',
  summary: 'Cancel a turn that waits or runs',
  description: 'As `POST /api/turns/{id}/cancel`. Has no effect on a turn that has ended.',
  params: z.object({ id: z.string().min(1).max(128) }),
  query: z.strictObject({
    tenant: TenantId.optional().meta({ description: 'Whose turn it is. Needed only where Redis does not know the turn.' }),
    reason: AuditReason.optional().meta({ description: 'Why, in a sentence. It goes on record, where the tenant reads it, too.' }),
  }),
  answers: { 202: { description: 'The turn as it stands.', json: TurnView } },
  errors: ['not_found', 'overloaded'],
});

export const cancelTurns = defineRoute({
  ...operator,
  id: 'cancelTurns',
  method: 'post',
  path: '/ops/api/turns/cancel',
  summary: 'Cancel all turns of a tenant that wait or run',
  description:
    'A dry run unless `dryRun` is false: it says how many. Those that wait first, so that none of them begins; each ends as any cancelled turn does, those that wait when their place comes. What is accepted later is not meant. Asked again, it counts only what is not to be cancelled yet.',
  body: { kind: 'json', schema: CancelTurnsBody },
  answers: { 200: { description: 'How many are, or would be, cancelled.', json: CancelledTurns } },
  errors: ['not_found', 'overloaded'],
});
