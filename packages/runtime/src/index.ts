export { duringActivity, type Activity } from './watchdog/activity.ts';
export { background } from './background.ts';
export { SqliteLock } from './concurrency/sqlite-lock.ts';
export { ConfigError, parseConfig } from './config.ts';
export { KeyedMutex, Slots, TenantSlots } from './concurrency/slots.ts';
export { armFailpoints, failpoint } from './failpoint.ts';
export {
  runService,
  ServiceStack,
  startPart,
  startService,
  stopPart,
  type ServiceOptions,
  type ServiceParts,
  type StartOptions,
} from './lifecycle.ts';
export { hashParts } from './hash-parts.ts';
export { createLog, type Log, type LogOptions } from './log.ts';
export { MemoryWatch } from './watchdog/memory-watch.ts';
export { newMetrics } from './metrics.ts';
export { serveMetrics } from './metrics-server.ts';
export {
  assertNoEviction,
  connectRedis,
  isRedisFull,
  openConnection,
  openRedis,
  reconnectDelayMs,
  redisReady,
  type RedisConnectOptions,
  type RedisRole,
} from './redis.ts';
export {
  dataEnvironment,
  demoModelEnvironment,
  mayUseDemoModel,
  metricsEnvironment,
  modelsEnvironment,
  processEnvironment,
  sandboxEnvironment,
  serviceEnvironment,
  toMetricsAddress,
  toProvidersFile,
  toSandboxSettings,
  toServiceSettings,
  type SandboxSettings,
  type ServiceSettings,
} from './service-environment.ts';
export { isSameSecret } from './same-secret.ts';
export { RedisScript, type ScriptReply } from './script.ts';
export { isPostgresUnavailable, openPostgres, postgresErrorCode, type PostgresConnection, type PostgresOptions } from './postgres.ts';
export { isUnavailable } from './unavailable.ts';
export { openSqlite, sqliteErrorCode, sqliteTrouble, type SqliteConnection, type SqliteOptions } from './sqlite.ts';
export { eventLoopStallMs } from './watchdog/watchdog.ts';
