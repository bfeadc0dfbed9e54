// Exports for a process without a database and Redis: without the weight of their clients.
export { background } from './concurrency/tasks.ts';
export { createLog, type Log } from './log.ts';
export { ServiceStack, startService, type ServiceParts } from './lifecycle.ts';
export { readVersion, type Version } from './version.ts';
