import { z } from 'zod';
import { TenantId } from '../../tenants/tenant.ts';
import { LogLine, Series, SeriesRange } from '../../turns/series.ts';
import { UsageDay, UsageOfTenant } from '../../turns/usage.ts';
import { Health, Overview, WaitingPage, WaitReason, WorkerView } from '../../turns/waiting.ts';
import { cursorParameter, defineRoute, limitParameter, pageHeaders } from '../route.ts';

const operator = { tag: 'operations', auth: 'operator', scopes: [], errors: [] } as const;

export const getOverview = defineRoute({
  ...operator,
  id: 'getOverview',
  method: 'get',
  path: '/ops/api/overview',
  summary: 'What waits, what runs, and why, in one sentence',
  answers: { 200: { description: 'The system now.', json: Overview } },
});

export const listWaiting = defineRoute({
  ...operator,
  id: 'listWaiting',
  method: 'get',
  path: '/ops/api/waiting',
  summary: 'Turns that wait, the longest first: who, for what, since when, behind whom',
  description: 'Turns of one conversation that wait for the same reason are one entry. One look reads at most 2,000 conversations.',
  query: z.strictObject({
    tenant: TenantId.optional(),
    reason: WaitReason.exclude(['staff']).optional(),
    limit: limitParameter,
    cursor: cursorParameter,
  }),
  answers: { 200: { description: 'One page; the sums are those of all pages.', json: WaitingPage, headers: pageHeaders } },
});

export const listWorkers = defineRoute({
  ...operator,
  id: 'listWorkers',
  method: 'get',
  path: '/ops/api/workers',
  summary: 'Workers that live, and the turns that they run',
  answers: { 200: { description: 'Workers, the oldest first.', json: z.array(WorkerView) } },
});

export const followOperatorFeed = defineRoute({
  ...operator,
  id: 'followOperatorFeed',
  method: 'get',
  path: '/ops/api/feed',
  summary: 'Hear what changes of all tenants, and when to look at figures again',
  description:
    'An event says what has changed, and of whom: `event: turn`, `session`, `handoff`, `schedule` and `delivery`, each with `data: {"tenantId"}`. `event: figures` comes every five seconds: what is measured, such as load, health, series and log lines, may be other. `event: again` comes first, and whenever changes may have been missed or were too many to name: read everything that is shown again. Changes are sent once a second at most. The stream ends after ten minutes at most; open it again.',
  answers: { 200: { description: 'Changes, as they come.', text: 'text/event-stream' } },
  errors: ['overloaded'],
});

const drained = { 200: { description: 'The worker as it last reported; it follows within seconds.', json: WorkerView } } as const;
const worker = z.object({ id: z.string().min(1).max(100) });

export const drainWorker = defineRoute({
  ...operator,
  id: 'drainWorker',
  method: 'post',
  path: '/ops/api/workers/{id}/drain',
  summary: 'Have a worker take no new turns',
  description: 'What it runs goes on, and it stays up. Lasts until `undrain`, or until the worker ends; not longer than Redis keeps it.',
  params: worker,
  answers: drained,
  errors: ['not_found'],
});

export const undrainWorker = defineRoute({
  ...operator,
  id: 'undrainWorker',
  method: 'post',
  path: '/ops/api/workers/{id}/undrain',
  summary: 'Have a drained worker take turns again',
  params: worker,
  answers: drained,
  errors: ['not_found'],
});

export const getSeries = defineRoute({
  ...operator,
  id: 'getSeries',
  method: 'get',
  path: '/ops/api/series',
  summary: 'How it was over time: waiting, running, ended, failed, times',
  description: 'From samples every ten seconds, kept in Redis for seven days in points of 10 s, 2 min and 15 min.',
  query: z.strictObject({ range: SeriesRange.default('1h') }),
  answers: { 200: { description: 'Points, the oldest first.', json: Series } },
});

export const listLogLines = defineRoute({
  ...operator,
  id: 'listLogLines',
  method: 'get',
  path: '/ops/api/logs',
  summary: 'Lines of the services’ logs, by request, turn or tenant',
  description:
    'Warnings and errors of all services, and all lines of turns that have one: the last 50,000, kept in Redis. One page reads 10,000 of them: it may be short, or empty, and still be followed by another.',
  query: z.strictObject({
    id: z.string().min(3).max(128).optional().meta({ description: 'Of a request, a turn or a tenant.' }),
    level: LogLine.shape.level.default('info').meta({ description: 'This one and those above it.' }),
    service: z.string().max(32).optional(),
    limit: limitParameter,
    // Ids that Redis can have: two numbers of 64 bits that are not both nothing.
    cursor: z
      .string()
      .max(39)
      .regex(/^(?!0+-0+$)\d{1,19}-\d{1,19}$/u)
      .optional(),
  }),
  answers: { 200: { description: 'Lines, the newest first.', json: z.array(LogLine), headers: pageHeaders } },
});

export const listUsageOfTenants = defineRoute({
  ...operator,
  id: 'listUsageOfTenants',
  method: 'get',
  path: '/ops/api/usage',
  summary: 'Tokens, model calls and cost of each tenant',
  query: z.strictObject({
    from: UsageDay.optional(),
    to: UsageDay.optional(),
    tenant: TenantId.optional().meta({ description: 'This one alone.' }),
    limit: limitParameter,
    cursor: TenantId.optional(),
  }),
  answers: { 200: { description: 'Tenants by id.', json: z.array(UsageOfTenant), headers: pageHeaders } },
  errors: ['not_found'],
});

export const getHealth = defineRoute({
  ...operator,
  id: 'getHealth',
  method: 'get',
  path: '/ops/api/health',
  summary: 'The checks of /readyz, with the room that is left',
  answers: { 200: { description: 'What works, and what does not.', json: Health } },
});

const page = { description: 'A page.', text: 'text/html; charset=utf-8' } as const;
const Cookie = { 'Set-Cookie': 'Lets a browser in below `/ops`, for twelve hours.' } as const;

export const signInPage = defineRoute({
  ...operator,
  auth: 'none',
  id: 'signInPage',
  method: 'get',
  path: '/ops/sign-in',
  summary: 'Where operators sign in with a browser',
  answers: { 200: page },
});

/** What a script sends to `POST /ops/sign-in`. */
export const OperatorSignIn = z.strictObject({ token: z.string().max(1024) });

export const signIn = defineRoute({
  ...operator,
  auth: 'none',
  id: 'signIn',
  method: 'post',
  path: '/ops/sign-in',
  summary: 'Exchange the operators’ token for a cookie',
  description:
    'A form with the field `token`, which is answered with a page; or `application/json` with that field, which is answered as everything else. Requests with the cookie that change something must come from the same origin.',
  body: { kind: 'raw', maxBytes: 4096 },
  answers: {
    204: { description: 'Signed in, of JSON.', headers: Cookie },
    303: { description: 'Signed in, of a form.', headers: { ...Cookie, Location: 'The queue dashboard.' } },
    401: page,
  },
  errors: ['invalid_request', 'invalid_key', 'not_found'],
});

export const signOut = defineRoute({
  ...operator,
  auth: 'none',
  id: 'signOut',
  method: 'post',
  path: '/ops/sign-out',
  summary: 'Have the browser forget the sign-in of the operator',
  description: 'From a page of the same origin alone.',
  answers: { 204: { description: 'Signed out.', headers: { 'Set-Cookie': 'Removes the cookie.' } } },
  errors: ['invalid_request'],
});
