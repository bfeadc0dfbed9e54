// Exports for a process without a database and Redis: without the weight of their clients.
export { answerDeadline, background, waitForAnswer } from './concurrency/tasks.ts';
export { buildCookie, isSecure, mayActByCookie, omitCookie, readCookie, type BrowserRequest } from './browser-cookie.ts';
export { createLog, type Log } from './log.ts';
export { ServiceStack, startService, type ServiceParts } from './lifecycle.ts';
export { Sealer } from './sealer.ts';
export { readVersion, type Version } from './version.ts';
