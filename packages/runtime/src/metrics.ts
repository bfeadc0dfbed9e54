import { Registry, collectDefaultMetrics } from 'prom-client';

/** A registry of its own for each service, with Node's process figures in it. Never a tenant or session id as a label. */
export function newMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  return registry;
}
