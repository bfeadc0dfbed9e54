import { providerEnvironment, toProviderSettings } from '@concierge/channel/provider-environment';
import {
  modelsEnvironment,
  parseConfig,
  port,
  seconds,
  serviceChecks,
  serviceEnvironment,
  toProvidersFile,
  toServiceSettings,
  wholeNumber,
} from '@concierge/runtime/config';
import { outboundAllow } from '@concierge/web/outbound-url';
import { z } from 'zod';

const count = wholeNumber({ min: 1, max: 1_000_000 });
/** Of each of its processes. */
const DATABASE_POOL = 10;

/** As many as there are places for requests that fetch files: each process has one at least. */
const PROCESSES_MAX = 16;
/** In production there is a balancer in front, which looks every second or two. */
const BALANCER_NOTICES_S = 5;
/** On a busy machine it looks later: as many times as long where it was not refused often enough in the time set. */
const LEAVE_AT_MOST_TIMES = 3;

const Settings = z
  .object({
    ...serviceEnvironment,
    ...providerEnvironment,
    ...modelsEnvironment,
    GATEWAY_PORT: port.default(8000),
    GATEWAY_HOST: z.string().optional(),
    GATEWAY_PROCESSES: wholeNumber({ min: 1, max: PROCESSES_MAX }).default(1),
    OPS_TOKEN: z.string().min(16, 'must have at least 16 characters').optional(),
    GATEWAY_MAX_CONNECTIONS: count.default(20_000),
    GATEWAY_MAX_STREAMS_PER_KEY: count.default(10_000),
    OUTBOUND_ALLOW: outboundAllow,
    GATEWAY_KEEP_ALIVE_S: seconds({ max: 86_400, zero: false }).default(75),
    GATEWAY_LEAVE_S: seconds({ max: 600 }).optional(),
    GATEWAY_UNREAD_ANSWER_S: seconds({ max: 86_400, zero: false }).default(20),
  })
  .transform((given) => ({
    ...toServiceSettings(given, { databasePool: DATABASE_POOL }),
    ...toProviderSettings(given),
    /** Names the models that settings may name; there need not be one. */
    providersFile: toProvidersFile(given),
    port: given.GATEWAY_PORT,
    /** Undefined: every interface. */
    host: given.GATEWAY_HOST,
    /** Processes that serve the port together. */
    processes: given.GATEWAY_PROCESSES,
    /** Undefined: operators' pages answer on loopback only. */
    opsToken: given.OPS_TOKEN,
    /** `host:port`s that URLs of tenants may lead to although they are not public. */
    outboundAllow: given.OUTBOUND_ALLOW,
    maxConnections: given.GATEWAY_MAX_CONNECTIONS,
    maxStreamsPerKey: given.GATEWAY_MAX_STREAMS_PER_KEY,
    /** Above the idle time of the load balancer in front, or it reuses a connection that is just being closed. */
    keepAliveMs: given.GATEWAY_KEEP_ALIVE_S * 1000,
    /** After SIGTERM: how long it goes on serving while it reports not ready, so that the balancer in front notices. */
    leaveMs: toLeaveMs(given),
    leaveAtMostMs: LEAVE_AT_MOST_TIMES * toLeaveMs(given),
    /** A client that takes nothing of its answer for so long is cut off. */
    unreadAnswerMs: given.GATEWAY_UNREAD_ANSWER_S * 1000,
  }));

function toLeaveMs({
  GATEWAY_LEAVE_S,
  NODE_ENV,
}: {
  readonly GATEWAY_LEAVE_S?: number | undefined;
  readonly NODE_ENV?: string | undefined;
}): number {
  return (GATEWAY_LEAVE_S ?? (NODE_ENV === 'production' ? BALANCER_NOTICES_S : 0)) * 1000;
}

export type Config = Readonly<z.infer<typeof Settings>>;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return parseConfig(Settings, env, serviceChecks);
}
