import { z } from 'zod';
import { defineRoute } from './route.ts';

export const Liveness = z.object({
  status: z.literal('ok'),
  version: z.string(),
  build: z.string().meta({ description: 'Which sources it was compiled from; `source` where it runs from source' }),
});

/** One line per dependency. */
export const Readiness = z
  .object({
    status: z.enum(['ready', 'unready', 'shutting_down']),
    checks: z.record(z.string(), z.object({ ok: z.boolean(), ms: z.number().nonnegative() })),
  })
  .meta({ id: 'Readiness' });
export type Readiness = z.infer<typeof Readiness>;

const open = { tag: 'operations', auth: 'none', scopes: [], errors: [] } as const;

export const livez = defineRoute({
  ...open,
  id: 'livez',
  method: 'get',
  path: '/livez',
  summary: 'Is the process alive?',
  answers: { 200: { description: 'It is.', json: Liveness } },
});

export const readyz = defineRoute({
  ...open,
  id: 'readyz',
  method: 'get',
  path: '/readyz',
  summary: 'Can it take work? One check per dependency',
  answers: { 200: { description: 'Yes.', json: Readiness }, 503: { description: 'No, and why.', json: Readiness } },
});

export const metrics = defineRoute({
  id: 'metrics',
  method: 'get',
  path: '/metrics',
  tag: 'operations',
  summary: 'Figures for Prometheus',
  auth: 'operator',
  scopes: [],
  answers: { 200: { description: 'Prometheus text format.', text: 'text/plain; version=0.0.4; charset=utf-8' } },
  errors: [],
});

export const openapi = defineRoute({
  ...open,
  id: 'openapi',
  method: 'get',
  path: '/openapi.json',
  summary: 'This document',
  answers: { 200: { description: 'OpenAPI 3.1.', json: z.looseObject({ openapi: z.string() }) } },
});

export const docs = defineRoute({
  ...open,
  id: 'docs',
  method: 'get',
  path: '/docs',
  summary: 'This document, for people',
  answers: { 200: { description: 'A page.', text: 'text/html; charset=utf-8' } },
});

export const queues = defineRoute({
  id: 'queues',
  method: 'get',
  path: '/ops/queues',
  below: true,
  tag: 'operations',
  summary: 'The queue, to look at',
  auth: 'operator',
  scopes: [],
  answers: { 200: { description: 'A page.', text: 'text/html; charset=utf-8' } },
  errors: [],
});
