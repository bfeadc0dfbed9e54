import { parseConfig } from '@concierge/runtime/process';
import { z } from 'zod';

const port = z.coerce.number().int().min(0).max(65_535);

const Environment = z.object({
  UI_PORT: port.default(8080),
  UI_HOST: z.string().optional(),
  GATEWAY_URL: z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' }).default('http://127.0.0.1:8000'),
  OPS_TOKEN: z.string().optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  LOG_PRETTY: z.stringbool().optional(),
  SHUTDOWN_GRACE_S: z.coerce.number().nonnegative().max(3600).default(25),
});

export interface Config {
  readonly port: number;
  /** Undefined: every interface. */
  readonly host: string | undefined;
  readonly gatewayUrl: URL;
  /** Only whether there is one matters here; the gateway compares it. */
  readonly opsTokenIsSet: boolean;
  readonly logLevel: string;
  readonly prettyLog: boolean;
  readonly graceMs: number;
}

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  const given = parseConfig(Environment, env);
  return {
    port: given.UI_PORT,
    host: given.UI_HOST,
    gatewayUrl: new URL(given.GATEWAY_URL),
    opsTokenIsSet: given.OPS_TOKEN !== undefined,
    logLevel: given.LOG_LEVEL,
    prettyLog: given.LOG_PRETTY ?? process.stdout.isTTY,
    graceMs: given.SHUTDOWN_GRACE_S * 1000,
  };
}
