import { checkTogether, parseConfig, port, processEnvironment, secret, toProcessSettings } from '@concierge/runtime/config';
import { z } from 'zod';

const secretVariables = { NODE_ENV: z.string().optional(), CONSOLE_SECRET: secret.optional() };

const productionCheck = checkTogether(secretVariables, ({ NODE_ENV, CONSOLE_SECRET }) =>
  NODE_ENV === 'production' && CONSOLE_SECRET === undefined ? [['CONSOLE_SECRET', 'is required in production']] : [],
);

const Settings = z
  .object({
    ...processEnvironment,
    ...secretVariables,
    UI_PORT: port.default(8080),
    UI_HOST: z.string().optional(),
    GATEWAY_URL: z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' }).default('http://127.0.0.1:8000'),
    OPS_TOKEN: z.string().optional(),
  })
  .transform((given) => ({
    ...toProcessSettings(given),
    port: given.UI_PORT,
    /** Undefined: every interface. */
    host: given.UI_HOST,
    gatewayUrl: new URL(given.GATEWAY_URL),
    /** Only whether there is one matters here; the gateway compares it. */
    opsTokenIsSet: given.OPS_TOKEN !== undefined,
    /** Seals sign-ins; never undefined in production. */
    secret: given.CONSOLE_SECRET,
  }));

export type Config = Readonly<z.infer<typeof Settings>>;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return parseConfig(Settings, env, [productionCheck]);
}
