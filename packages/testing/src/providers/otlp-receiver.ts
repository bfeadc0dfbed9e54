import root from '@opentelemetry/otlp-transformer/build/src/generated/root.js';
import { z } from 'zod';
import { serveRequests } from '../request-server.ts';

/** A message of the official definitions, as the package of OpenTelemetry carries them. */
interface Codec {
  decode(bytes: Uint8Array): object;
  encode(message: object): { finish(): Uint8Array };
  toObject(message: object, options: object): unknown;
}

const codec = z.custom<Codec>((value) => typeof value === 'function');
const { ExportTraceServiceRequest } = z
  .object({
    opentelemetry: z.object({
      proto: z.object({ collector: z.object({ trace: z.object({ v1: z.object({ ExportTraceServiceRequest: codec }) }) }) }),
    }),
  })
  .parse(root).opentelemetry.proto.collector.trace.v1;

const Value = z.object({
  stringValue: z.string().optional(),
  boolValue: z.boolean().optional(),
  intValue: z.string().optional(),
  doubleValue: z.number().optional(),
});
const Attributes = z
  .array(z.object({ key: z.string(), value: Value }))
  .default([])
  .transform((pairs) => Object.fromEntries(pairs.map(({ key, value }) => [key, readValue(value)])));
/** Bytes are shown in Base64. */
const Id = z.string().transform((text) => Buffer.from(text, 'base64').toString('hex'));
const Span = z.object({
  traceId: Id,
  spanId: Id,
  parentSpanId: Id.optional(),
  name: z.string(),
  kind: z.string(),
  startTimeUnixNano: z.string().transform(BigInt),
  endTimeUnixNano: z.string().transform(BigInt),
  attributes: Attributes,
  status: z.object({ code: z.string() }).optional(),
});
const Received = z.object({
  resourceSpans: z.array(
    z.object({ resource: z.object({ attributes: Attributes }), scopeSpans: z.array(z.object({ spans: z.array(Span) })) }),
  ),
});
export type ReceivedSpan = z.infer<typeof Span> & { readonly resource: z.infer<typeof Attributes> };

function readValue({ stringValue, boolValue, intValue, doubleValue }: z.infer<typeof Value>): string | number | boolean | undefined {
  return stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue));
}

/**
 * A collector that takes spans over OTLP (HTTP, Protocol Buffers) and decodes them by the official definitions. What is
 * not in those, or written in another order or form than theirs, is answered with 400.
 */
export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** Of each post, the refused ones included. */
  readonly headers: Headers[] = [];
  /** Answered to every post. */
  status = 200;
  #server: Awaited<ReturnType<typeof serveRequests>> | undefined;

  async start(): Promise<this> {
    this.#server = await serveRequests(async (request) => this.#take(request));
    return this;
  }

  /** OTEL_EXPORTER_OTLP_ENDPOINT */
  get url(): string {
    return new URL(this.#server?.url ?? '').origin;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }

  async #take(request: Request): Promise<Response> {
    this.headers.push(request.headers);
    if (this.status !== 200) return new Response(null, { status: this.status });
    const isTraces = new URL(request.url).pathname === '/v1/traces';
    if (!isTraces || request.headers.get('content-type') !== 'application/x-protobuf') return new Response(null, { status: 415 });
    const spans = decodeSpans(new Uint8Array(await request.arrayBuffer()));
    if (spans === undefined) return new Response(null, { status: 400 });
    this.spans.push(...spans);
    return new Response(null, { status: 200 });
  }
}

/** Undefined when it has a field, or a value, that the definitions do not have. */
function decodeSpans(bytes: Uint8Array): ReceivedSpan[] | undefined {
  const message = ExportTraceServiceRequest.decode(bytes);
  // Decoding leaves out what is not known.
  if (!Buffer.from(ExportTraceServiceRequest.encode(message).finish()).equals(bytes)) return undefined;
  const shown = ExportTraceServiceRequest.toObject(message, { longs: String, enums: String, bytes: String });
  return Received.parse(shown).resourceSpans.flatMap(({ resource: { attributes: resource }, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans.map((span) => ({ ...span, resource }))),
  );
}
