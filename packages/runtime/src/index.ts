export { eventLoopStallMs, stoodStillWithin } from './watchdog/watchdog.ts';
export { createLog, type Log, type LogOptions } from './log.ts';
export { KeptLines, keptLines } from './kept-lines.ts';
export { SqliteLock } from './concurrency/sqlite-lock.ts';
export { ConfigError, parseConfig, type SandboxSettings, type ServiceSettings } from './config.ts';
export {
  answerDeadline,
  background,
  duringActivity,
  KeyedMutex,
  Slots,
  TenantSlots,
  waitForAnswer,
  type Activity,
} from './concurrency/tasks.ts';
export { readBootId } from './boot.ts';
export { buildCookie, isSecure, mayActByCookie, omitCookie, readCookie, type BrowserRequest } from './browser-cookie.ts';
export { readVersion, type Version } from './version.ts';
export { hashParts, isSameSecret } from './hash.ts';
export { armFailpoints, failpoint, isArmed } from './failpoint.ts';
export {
  runService,
  ServiceStack,
  startPart,
  startService,
  stopMessage,
  stopPart,
  type ServiceOptions,
  type ServiceParts,
  type StartOptions,
} from './lifecycle.ts';
export { startThread } from './thread.ts';
export { MemoryWatch } from './watchdog/memory-watch.ts';
export { Figures, listSeries } from './metrics/open-figure.ts';
export { newMetrics, openProcessFigures, serveMetrics } from './metrics/metrics.ts';
export { countIndexError } from './metrics/process-counts.ts';
export { askSlots, handleMessages, isFirstSlot, redisPrefix, findSlot, listSlots } from './cluster/redis-slots.ts';
export { withSlots } from './redis-address.ts';
export {
  assertNoEviction,
  connectRedis,
  hideCredentials,
  isRedisFull,
  openConnection,
  openRedis,
  readRedisMemory,
  reconnectDelayMs,
  redisReady,
  type RedisConnectOptions,
  type RedisRole,
  RedisScript,
} from './redis.ts';
export type { ExportedSpan, SpanAttributes } from './spans/encode-spans.ts';
export { SpanExporter, type SpanExporterOptions } from './spans/span-exporter.ts';
export { Sealer } from './sealer.ts';
export { isPostgresUnavailable, isUnavailable, laterVersionCode, postgresErrorCode, staleCode } from './unavailable.ts';
export { openSqlite, sqliteErrorCode, sqliteTrouble, type SqliteConnection, type SqliteOptions } from './sqlite.ts';
