import { z } from 'zod';
import { checkTogether, wholeNumber } from '../environment.ts';

const address = z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' });
const PROTOCOL = 'http/protobuf';

/** The standard variables of OpenTelemetry, as far as they are read. */
export const spansEnvironment = {
  OTEL_EXPORTER_OTLP_ENDPOINT: address.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: address.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal(PROTOCOL, { error: `must be ${PROTOCOL}` }).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: z.string().optional(),
  OTEL_EXPORTER_OTLP_TIMEOUT: wholeNumber({ min: 1, max: 60_000 }).default(10_000),
  OTEL_BSP_SCHEDULE_DELAY: wholeNumber({ min: 10, max: 600_000 }).default(5000),
  OTEL_SERVICE_NAME: z
    .string()
    .regex(/^[\w.-]{1,64}$/u, 'must have up to 64 letters, digits, dots, hyphens and underscores')
    .default('concierge'),
  OTEL_SDK_DISABLED: z.stringbool('must be true or false').default(false),
};

type Given = z.output<z.ZodObject<typeof spansEnvironment>>;

/** `name=value`, with commas between, each percent-encoded (W3C Baggage). */
export const spansCheck = checkTogether(
  { OTEL_EXPORTER_OTLP_HEADERS: spansEnvironment.OTEL_EXPORTER_OTLP_HEADERS },
  ({ OTEL_EXPORTER_OTLP_HEADERS: headers = '' }) =>
    readHeaders(headers) === undefined ? [['OTEL_EXPORTER_OTLP_HEADERS', 'must be name=value, with commas between them']] : [],
);

/** Where spans go; undefined: nowhere. */
export function toSpanSettings(given: Given) {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own, OTEL_SDK_DISABLED: isOff } = given;
  const url = own ?? (base === undefined ? undefined : `${base.replace(/\/$/u, '')}/v1/traces`);
  if (url === undefined || isOff) return undefined;
  return {
    url,
    headers: readHeaders(given.OTEL_EXPORTER_OTLP_HEADERS ?? '') ?? {},
    timeoutMs: given.OTEL_EXPORTER_OTLP_TIMEOUT,
    everyMs: given.OTEL_BSP_SCHEDULE_DELAY,
    serviceName: given.OTEL_SERVICE_NAME,
  };
}

function readHeaders(text: string): Record<string, string> | undefined {
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  try {
    const read = pairs.map((pair) => {
      const at = pair.indexOf('=');
      return [pair.slice(0, Math.max(0, at)).trim(), decodeURIComponent(pair.slice(at + 1).trim())] as const;
    });
    return read.every(([name]) => /^[\w!#$%&'*+.^`|~-]+$/u.test(name)) ? Object.fromEntries(read) : undefined;
  } catch {
    return undefined;
  }
}
