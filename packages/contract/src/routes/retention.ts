import { z } from 'zod';
import { RetentionReport, RetentionRule } from '../tenants/retention.ts';
import { TenantId } from '../tenants/tenant.ts';
import { defineRoute } from './route.ts';

const { sessionsDays, historyDays, uploadsDays } = RetentionRule.shape;
const asDays = (days: typeof sessionsDays) => z.coerce.number().pipe(days.unwrap()).optional();

const shared = {
  method: 'get',
  description:
    'A dry run: of the rule in the settings (`retention` of `PATCH /api/tenant`), or of another one that is given here, whole. The cron service removes it, once an hour; never a conversation with an accepted message that is not answered, or that staff has.',
  query: z
    .strictObject({ sessionsDays: asDays(sessionsDays), historyDays: asDays(historyDays), uploadsDays: asDays(uploadsDays) })
    .meta({ description: 'A rule in place of that of the settings.' }),
  answers: { 200: { description: 'How much it is.', json: RetentionReport } },
} as const;

export const previewRetention = defineRoute({
  ...shared,
  id: 'previewRetention',
  summary: 'What the retention rule would remove now',
  path: '/api/retention',
  tag: 'tenant',
  auth: 'key',
  scopes: ['admin', 'read'],
  errors: [],
});

export const previewTenantRetention = defineRoute({
  ...shared,
  id: 'previewTenantRetention',
  summary: 'What the retention rule of a tenant would remove now',
  path: '/ops/api/tenants/{tenant}/retention',
  tag: 'operations',
  auth: 'operator',
  scopes: [],
  params: z.object({ tenant: TenantId }),
  errors: ['not_found'],
});
