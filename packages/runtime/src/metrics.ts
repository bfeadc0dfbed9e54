import { Registry, collectDefaultMetrics } from 'prom-client';

/**
 * Creates a separate registry for each service, with Node's process metrics. Never a tenant or session id as a label.
 */
export function newMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
