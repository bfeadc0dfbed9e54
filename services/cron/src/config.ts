import {
  metricsEnvironment,
  parseConfig,
  serviceChecks,
  serviceEnvironment,
  toMetricsAddress,
  toServiceSettings,
} from '@concierge/runtime/config';
import { z } from 'zod';
import type { MailSettings } from './mailer.ts';

/** It works through schedules and leftovers, a few at a time. */
const DATABASE_POOL = 5;

const mailEnvironment = {
  SMTP_URL: z.url({ protocol: /^smtps?$/u, error: 'must be an smtp:// or smtps:// address' }).optional(),
  SMTP_FROM: z
    .string()
    .max(320)
    .regex(/^[^\r\n]*[^\s@]@[^\s@>]+>?$/u, 'must be an address such as Concierge <concierge@example.com>')
    .optional(),
};

const Settings = z.object({ ...serviceEnvironment, ...metricsEnvironment, ...mailEnvironment }).transform((given) => ({
  ...toServiceSettings(given, { databasePool: DATABASE_POOL }),
  metrics: toMetricsAddress(given),
  mail: toMailSettings(given),
}));

interface MailVariables {
  readonly SMTP_URL?: string | undefined;
  readonly SMTP_FROM?: string | undefined;
}

/** Undefined: the service sends no e-mail. */
function toMailSettings({ SMTP_URL: smtpUrl, SMTP_FROM: from }: MailVariables): MailSettings | undefined {
  if (smtpUrl === undefined) return undefined;
  return { smtpUrl, from: from ?? `concierge@${new URL(smtpUrl).hostname}` };
}

export type Config = Readonly<z.infer<typeof Settings>>;

/** @throws ConfigError listing every bad value at once */
export function readConfig(env: NodeJS.ProcessEnv = process.env): Config {
  return parseConfig(Settings, env, serviceChecks);
}
