export { duringActivity, type Activity } from './activity.ts';
export { background } from './background.ts';
export { KeyedMutex } from './concurrency/keyed-mutex.ts';
export { SharedRun } from './concurrency/shared-run.ts';
export { SqliteLock } from './concurrency/sqlite-lock.ts';
export { ConfigError, parseConfig } from './config.ts';
export { armFailpoints, failpoint } from './failpoint.ts';
export { runService, startService, type Running, type ServiceOptions, type StartOptions, type Stoppable } from './lifecycle.ts';
export { createLog, type Log, type LogOptions } from './log.ts';
export { MemoryWatch } from './memory-watch.ts';
export { newMetrics } from './metrics.ts';
export { serveMetrics } from './metrics-server.ts';
export {
  assertNoEviction,
  connectRedis,
  isRedisFull,
  reconnectDelayMs,
  redisReady,
  type RedisConnectOptions,
  type RedisRole,
} from './redis.ts';
export {
  demoModelEnvironment,
  mayUseDemoModel,
  serviceEnvironment,
  toServiceSettings,
  type ServiceSettings,
} from './service-environment.ts';
export { RedisScript, type ScriptReply } from './script.ts';
export { isPostgresUnavailable, openPostgres, postgresErrorCode, type PostgresConnection, type PostgresOptions } from './postgres.ts';
export { isUnavailable } from './unavailable.ts';
export { openSqlite, sqliteErrorCode, sqliteTrouble, type SqliteConnection, type SqliteOptions } from './sqlite.ts';
export { eventLoopStallMs } from './watchdog.ts';
