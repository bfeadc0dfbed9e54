import { hash } from 'node:crypto';
import type { AcceptedTurn, TraceSpan, TurnRecord } from '@concierge/contract';
import type { ExportedSpan, Log, SpanAttributes, SpanExporter } from '@concierge/runtime';
import { traceRecord } from '@concierge/turn';

/** W3C Trace Context, version 00; a trace or span of zeros is none. */
const traceparentPattern = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/u;

interface Place {
  readonly traceId: string;
  readonly rootId: string;
  /** The caller's own span. */
  readonly parentId: string | undefined;
}

/** Ids follow from the turn's: an attempt that goes on elsewhere has the same, and no one has to keep them. */
function findPlace({ turnId, traceparent = '' }: Pick<AcceptedTurn, 'turnId' | 'traceparent'>): Place {
  const [, traceId, parentId] = traceparentPattern.exec(traceparent) ?? [];
  return { traceId: traceId ?? deriveId(turnId, 32), rootId: deriveId(`${turnId}:turn`, 16), parentId };
}

function deriveId(text: string, digits: number): string {
  return hash('sha256', text).slice(0, digits);
}

/** What a turn's model calls tell providers of it. */
export function toTraceparent(turn: Pick<AcceptedTurn, 'turnId' | 'traceparent'>): string {
  const { traceId, rootId } = findPlace(turn);
  return `00-${traceId}-${rootId}-01`;
}

export interface TurnSpansOptions {
  readonly exporter: Pick<SpanExporter, 'add'>;
  readonly log: Log;
}

/** Exports ended turns as spans of OpenTelemetry: made of the turn's trace, after its end. */
export class TurnSpans {
  readonly #options: TurnSpansOptions;

  constructor(options: TurnSpansOptions) {
    this.#options = options;
  }

  /** Neither delays the turn's end nor fails it. */
  ended(turn: AcceptedTurn, record: TurnRecord): void {
    const { exporter, log } = this.#options;
    setImmediate(() => {
      try {
        exporter.add(toSpans(turn, record));
      } catch (error) {
        log.warn({ err: error, turnId: turn.turnId }, 'a turn could not be exported');
      }
    });
  }
}

/** A turn as the agent's invocation, and below it what happened, in the names of the GenAI conventions. */
export function toSpans(accepted: AcceptedTurn, record: TurnRecord): ExportedSpan[] {
  const { sessionId, agent, channel } = accepted;
  const { spans, costUsd } = traceRecord({ sessionId, agent, channel, record });
  const { traceId, rootId, parentId } = findPlace(accepted);
  const root: ExportedSpan = {
    traceId,
    spanId: rootId,
    parentSpanId: parentId,
    name: `invoke_agent ${agent}`,
    kind: 'server',
    startMs: Math.min(Date.parse(record.acceptedAt), ...spans.map(({ at }) => Date.parse(at))),
    endMs: Date.parse(record.endedAt),
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': agent,
      'gen_ai.conversation.id': sessionId,
      'gen_ai.usage.input_tokens': record.usage.inputTokens,
      'gen_ai.usage.output_tokens': record.usage.outputTokens,
      'error.type': record.error?.code,
      'concierge.tenant.id': accepted.tenantId,
      'concierge.turn.id': accepted.turnId,
      'concierge.channel': channel,
      'concierge.origin': record.origin,
      'concierge.status': record.status,
      'concierge.attempts': record.attempts,
      'concierge.cost_usd': costUsd ?? undefined,
    },
    isError: record.status === 'failed',
  };
  const children = spans.map((span, index): ExportedSpan => ({
    traceId,
    spanId: deriveId(`${accepted.turnId}:${String(index)}`, 16),
    parentSpanId: rootId,
    name: nameSpan(span),
    kind: span.kind === 'model' ? 'client' : 'internal',
    startMs: Date.parse(span.at),
    endMs: Date.parse(span.at) + (span.durationMs ?? 0),
    attributes: listAttributes(span),
    isError: span.isError,
  }));
  return [root, ...children];
}

function nameSpan({ kind, name }: TraceSpan): string {
  if (kind === 'model') return `chat ${name}`;
  if (kind === 'tool') return `execute_tool ${name}`;
  return `${kind} ${name}`.trim();
}

function listAttributes(span: TraceSpan): SpanAttributes {
  const { kind, name, within, parts = [] } = span;
  if (kind === 'model') return listCallAttributes(span);
  if (kind === 'tool') return { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name, 'concierge.tool.within': within };
  return Object.fromEntries(parts.map(({ name: part, tokens }) => [`concierge.prompt.${part}`, tokens]));
}

function listCallAttributes({ name, fallbackFor, firstTextMs, ...span }: TraceSpan): SpanAttributes {
  return {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': name.split('/', 1)[0],
    'gen_ai.request.model': fallbackFor ?? name,
    'gen_ai.response.model': name,
    'gen_ai.usage.input_tokens': span.inputTokens,
    'gen_ai.usage.output_tokens': span.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': span.cachedInputTokens,
    'concierge.cost_usd': span.costUsd,
    'concierge.first_text_ms': firstTextMs,
    'concierge.failed_attempts': span.failedAttempts,
  };
}
