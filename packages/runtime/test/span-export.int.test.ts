import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { eventually, OtlpReceiver, silentLog as log } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { parseConfig, spansCheck, spansEnvironment, toSpanSettings } from '@concierge/runtime/config';
import { z } from 'zod';
import { createLog, SpanExporter, type ExportedSpan } from '../src/index.ts';

let receiver: OtlpReceiver;
let exporter: SpanExporter;

const span: ExportedSpan = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  name: 'chat a/b',
  kind: 'client',
  startMs: Date.parse('2026-11-26T10:00:00.000Z'),
  endMs: Date.parse('2026-11-26T10:00:03.860Z'),
  attributes: { 'gen_ai.usage.input_tokens': 4_294_967_296, 'concierge.cost_usd': 0.0312, own: true, none: undefined, text: 'Grüße' },
  isError: false,
};
const nanos = (ms: number): bigint => BigInt(ms) * 1_000_000n;

function read(env: Record<string, string>): ReturnType<typeof toSpanSettings> {
  return parseConfig(z.object(spansEnvironment).transform(toSpanSettings), env, [spansCheck]);
}

setUpEach(async (stack) => {
  receiver = stack.use(await new OtlpReceiver().start());
  const options = { url: `${receiver.url}/v1/traces`, headers: { 'x-key': 'a b' }, timeoutMs: 10_000, everyMs: 50 };
  exporter = new SpanExporter({ ...options, resource: { 'service.name': 'concierge' }, log });
});

describe('spans', () => {
  it('arrive as the official definitions have them, with every kind of value', async () => {
    exporter.add([span, { ...span, spanId: '00f067aa0ba902b7', parentSpanId: span.spanId, kind: 'internal', isError: true }]);
    await exporter.flush();
    expect(receiver.spans).toMatchObject([
      {
        traceId: span.traceId,
        spanId: span.spanId,
        name: span.name,
        kind: 'SPAN_KIND_CLIENT',
        startTimeUnixNano: nanos(span.startMs),
        endTimeUnixNano: nanos(span.endMs),
        resource: { 'service.name': 'concierge', 'service.version': expect.any(String) },
      },
      { parentSpanId: span.spanId, kind: 'SPAN_KIND_INTERNAL', status: { code: 'STATUS_CODE_ERROR' } },
    ]);
    expect(receiver.spans[0]?.parentSpanId).toBeUndefined();
    expect(receiver.spans[0]?.attributes).toEqual({
      'gen_ai.usage.input_tokens': 4_294_967_296,
      'concierge.cost_usd': 0.0312,
      own: true,
      text: 'Grüße',
    });
    expect(receiver.headers[0]?.get('x-key')).toBe('a b');
  });

  it('are sent by themselves, and what waits when the service stops', async () => {
    exporter.start();
    exporter.add([span]);
    await eventually(() => receiver.spans.length === 1);
    exporter.add([{ ...span, name: 'last' }]);
    await exporter.stop();
    expect(receiver.spans.map(({ name }) => name)).toEqual(['chat a/b', 'last']);
  });

  it('are dropped where the collector is away or refuses them, and later ones arrive', async () => {
    receiver.status = 503;
    exporter.add([span]);
    await exporter.flush();
    expect(receiver.spans).toEqual([]);
    receiver.status = 200;
    exporter.add(Array.from({ length: 9000 }, () => span));
    await exporter.flush();
    expect(receiver.spans).toHaveLength(8192);
  });

  it('are sent when the answer arrived while this process stood still', async () => {
    const collector = createServer((request, response) => {
      request.resume().on('end', () => {
        response.end();
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000);
      });
    }).listen(0, '127.0.0.1');
    await once(collector, 'listening');
    using closing = new DisposableStack();
    closing.defer(() => collector.close().closeAllConnections());
    const address = collector.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const lines: string[] = [];
    const told = createLog({ service: 'test', level: 'silent' });
    told.warn = (line: unknown, text?: unknown) => lines.push(String(text ?? line));
    const options = { url: `http://127.0.0.1:${String(port)}/v1/traces`, headers: {}, timeoutMs: 1500, everyMs: 50, resource: {} };
    const hasty = new SpanExporter({ ...options, log: told });
    hasty.add([span]);
    await hasty.flush();
    expect(lines).toEqual([]);
  });
});

describe('the variables of OpenTelemetry', () => {
  it('name the collector, or nothing is sent', () => {
    expect(read({})).toBeUndefined();
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/', OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b,y=1' };
    expect(read(env)).toMatchObject({ url: 'http://collector:4318/v1/traces', headers: { 'x-key': 'a b', y: '1' }, timeoutMs: 10_000 });
    expect(read({ ...env, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://other/x' })?.url).toBe('http://other/x');
    expect(read({ ...env, OTEL_SDK_DISABLED: 'true' })).toBeUndefined();
    expect(() => read({ ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toThrow('http/protobuf');
    expect(() => read({ ...env, OTEL_EXPORTER_OTLP_HEADERS: 'no pair' })).toThrow('OTEL_EXPORTER_OTLP_HEADERS');
  });
});
