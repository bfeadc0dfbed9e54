// What a process needs that has no database and no Redis: without the weight of their clients.
export { background } from './background.ts';
export { parseConfig } from './config.ts';
export { ServiceStack, startService, type ServiceParts } from './lifecycle.ts';
export { createLog, type Log } from './log.ts';
export { processEnvironment, toProcessSettings } from './service-environment.ts';
