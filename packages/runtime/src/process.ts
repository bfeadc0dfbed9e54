// Exports for a process without a database and Redis: without the weight of their clients.
export { background } from './background.ts';
export { parseConfig } from './config.ts';
export { ServiceStack, startService, type ServiceParts } from './lifecycle.ts';
export { createLog, type Log } from './log.ts';
export { processEnvironment, toProcessSettings } from './service-environment.ts';
