import { readVersion } from '@concierge/runtime';
import { Registry } from 'prom-client';
import { sendDocsPage } from '../docs/docs-page.ts';
import { openApiDocument } from '../docs/openapi.ts';
import { streamed, type Handlers } from '../http/call.ts';
import { CompressedBytes } from '../http/compressed-bytes.ts';
import type { Drain } from '../http/http-server.ts';
import type { Siblings } from '../processes/siblings.ts';
import type { QueueDashboard } from './queue-dashboard.ts';
import { readiness, type ReadinessChecks } from './readiness.ts';

export interface OperationOptions {
  readonly checks: ReadinessChecks;
  readonly drain: Drain;
  readonly queueDashboard: QueueDashboard;
  readonly siblings: Pick<Siblings, 'gatherMetrics'>;
}

type OperationHandlers = Pick<Handlers, 'livez' | 'readyz' | 'metrics' | 'openapi' | 'docs' | 'queues'>;

export function operationHandlers({ checks, drain, queueDashboard, siblings }: OperationOptions): OperationHandlers {
  let document: Promise<CompressedBytes> | undefined;
  return {
    livez: () => ({ kind: 'answer', status: 200, json: { status: 'ok', ...readVersion() } }),
    readyz: async () => {
      // What leaves says so at once, whatever its dependencies take to answer.
      if (drain.refuseReadiness()) return { kind: 'answer', status: 503, json: { status: 'shutting_down', checks: {} } };
      const found = await readiness(checks);
      const status = drain.leaving ? 'shutting_down' : found.status;
      return { kind: 'answer', status: status === 'ready' ? 200 : 503, json: { ...found, status } };
    },
    metrics: async () => ({
      kind: 'answer',
      status: 200,
      text: await siblings.gatherMetrics(),
      headers: { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE },
    }),
    openapi: async ({ request, response }) => {
      document ??= CompressedBytes.from(Buffer.from(JSON.stringify(openApiDocument())));
      // Asked about every time: with another version of the service it is another one.
      (await document).send(request, response, { type: 'application/json; charset=utf-8', cacheControl: 'no-cache' });
      return streamed;
    },
    docs: ({ response }) => {
      sendDocsPage(response);
      return streamed;
    },
    queues: async ({ request, response }) => {
      await queueDashboard.send(request, response);
      return streamed;
    },
  };
}
