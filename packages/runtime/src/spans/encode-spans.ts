/** A span as it is exported. Ids in hexadecimal: 32 digits of the trace, 16 of the span. */
export interface ExportedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  readonly isError: boolean;
}

/** What is undefined is left out. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

const kinds = { internal: 1, server: 2, client: 3 } as const;
const STATUS_ERROR = 2;
const NANOS_PER_MS = 1_000_000n;
/** Wire types of Protocol Buffers. */
const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

/** `ExportTraceServiceRequest` of OTLP 1 (opentelemetry/proto/collector/trace/v1), as Protocol Buffers. */
export function encodeSpans(spans: readonly ExportedSpan[], resource: SpanAttributes, scope: string): Buffer {
  const scopeSpans = Buffer.concat([message(1, text(1, scope)), ...spans.map((span) => message(2, encodeSpan(span)))]);
  const resourceSpans = Buffer.concat([message(1, encodeAttributes(1, resource)), message(2, scopeSpans)]);
  return message(1, resourceSpans);
}

function encodeSpan({ traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, isError }: ExportedSpan): Buffer {
  return Buffer.concat([
    message(1, Buffer.from(traceId, 'hex')),
    message(2, Buffer.from(spanId, 'hex')),
    ...(parentSpanId === undefined ? [] : [message(4, Buffer.from(parentSpanId, 'hex'))]),
    text(5, name),
    whole(6, kinds[kind]),
    time(7, startMs),
    time(8, endMs),
    encodeAttributes(9, attributes),
    ...(isError ? [message(15, whole(3, STATUS_ERROR))] : []),
  ]);
}

function encodeAttributes(field: number, attributes: SpanAttributes): Buffer {
  const pairs = Object.entries(attributes).map(([key, value]) =>
    value === undefined ? Buffer.alloc(0) : message(field, Buffer.concat([text(1, key), message(2, encodeValue(value))])),
  );
  return Buffer.concat(pairs);
}

/** `AnyValue`: text, truth, a whole number, any other number. */
function encodeValue(value: string | number | boolean): Buffer {
  if (typeof value === 'string') return text(1, value);
  if (typeof value === 'boolean') return whole(2, value ? 1 : 0);
  if (Number.isSafeInteger(value) && value >= 0) return whole(3, value);
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([tag(4, FIXED64), bytes]);
}

function tag(field: number, type: number): Buffer {
  return varint(field * 8 + type);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

function whole(field: number, value: number): Buffer {
  return Buffer.concat([tag(field, VARINT), varint(value)]);
}

function text(field: number, value: string): Buffer {
  return message(field, Buffer.from(value));
}

function message(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([tag(field, BYTES), varint(bytes.length), bytes]);
}

function time(field: number, ms: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(Math.max(0, Math.round(ms))) * NANOS_PER_MS);
  return Buffer.concat([tag(field, FIXED64), bytes]);
}
