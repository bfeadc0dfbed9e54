import {
  isMcpToolName,
  isToolName,
  type AcceptedTurn,
  type TurnRecord,
  type TurnStepView,
  type MessagingChannel,
  type DeliveryState,
  type EventType,
} from '@concierge/contract';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900];

/**
 * Metrics of turns. Labels have few values: agents of the tenant's own count as `custom`, and no tenant or session is
 * named.
 */
export class TurnMetrics {
  readonly #turns: Counter<'agent' | 'outcome'>;
  readonly #duration: Histogram;
  readonly #firstText: Histogram;
  readonly #modelTokens: Counter<'model' | 'kind'>;
  readonly #modelCalls: Counter<'model'>;
  readonly #toolCalls: Counter<'tool' | 'outcome'>;
  readonly #compactions: Counter<'kind'>;
  readonly #failedAttempts: Counter<'model' | 'kind'>;

  constructor(registry: Registry, running: () => number) {
    const registers = [registry];
    this.#turns = new Counter({ name: 'concierge_turns_total', help: 'Ended turns', labelNames: ['agent', 'outcome'], registers });
    this.#duration = new Histogram({ name: 'concierge_turn_seconds', help: 'From acceptance to the end', buckets: SECONDS, registers });
    this.#firstText = new Histogram({
      name: 'concierge_turn_first_text_seconds',
      help: 'From acceptance to the first text',
      buckets: SECONDS,
      registers,
    });
    this.#modelTokens = new Counter({
      name: 'concierge_model_tokens_total',
      help: 'Tokens by direction',
      labelNames: ['model', 'kind'],
      registers,
    });
    this.#modelCalls = new Counter({ name: 'concierge_model_calls_total', help: 'Answered model calls', labelNames: ['model'], registers });
    this.#toolCalls = new Counter({ name: 'concierge_tool_calls_total', help: 'Tool calls', labelNames: ['tool', 'outcome'], registers });
    this.#compactions = new Counter({
      name: 'concierge_compactions_total',
      help: 'Sessions made smaller',
      labelNames: ['kind'],
      registers,
    });
    this.#failedAttempts = new Counter({
      name: 'concierge_model_failures_total',
      help: 'Failed attempts at a model call',
      labelNames: ['model', 'kind'],
      registers,
    });
    new Gauge({
      name: 'concierge_turns_running',
      help: 'Turns this worker runs now',
      registers,
      collect() {
        this.set(running());
      },
    });
  }

  ended({ agent, acceptedAtMs }: Pick<AcceptedTurn, 'agent' | 'acceptedAtMs'>, record: TurnRecord): void {
    const outcome = record.error?.code ?? record.finishReason ?? record.status;
    this.#turns.inc({ agent: agent === 'admin' || agent === 'cs' ? agent : 'custom', outcome });
    this.#duration.observe((Date.parse(record.endedAt) - acceptedAtMs) / 1000);
    if (record.firstTextAt !== null) this.#firstText.observe((Date.parse(record.firstTextAt) - acceptedAtMs) / 1000);
    for (const { model, calls, inputTokens, outputTokens } of record.models) {
      this.#modelCalls.inc({ model }, calls);
      this.#modelTokens.inc({ model, kind: 'input' }, inputTokens);
      this.#modelTokens.inc({ model, kind: 'output' }, outputTokens);
    }
    for (const step of record.steps) this.#step(step);
  }

  modelFailed(model: string, kind: string): void {
    this.#failedAttempts.inc({ model, kind });
  }

  #step({ kind, name, isError }: TurnStepView): void {
    // A name that the model made up must not become a label.
    if (kind === 'tool') this.#toolCalls.inc({ tool: toToolLabel(name), outcome: isError ? 'error' : 'ok' });
    if (kind === 'compaction') this.#compactions.inc({ kind: name });
  }
}

function toToolLabel(tool: string): string {
  if (isToolName(tool)) return tool;
  return isMcpToolName(tool) ? 'attached' : 'unknown';
}

/** Metrics of messages to channels. Labels have few values, and no tenant is named: the log names it. */
export class DeliveryMetrics {
  readonly #ended: Counter<'channel' | 'state'>;
  readonly #failures: Counter<'channel' | 'class'>;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#ended = new Counter({
      name: 'concierge_deliveries_total',
      help: 'Messages to channels by outcome',
      labelNames: ['channel', 'state'],
      registers,
    });
    this.#failures = new Counter({
      name: 'concierge_channel_failures_total',
      help: 'Attempts to send that a channel refused, by class; binding_failed: nothing is sent until the credentials are fixed',
      labelNames: ['channel', 'class'],
      registers,
    });
  }

  ended(channel: MessagingChannel, state: DeliveryState): void {
    this.#ended.inc({ channel, state });
  }

  failed(channel: MessagingChannel, kind: string): void {
    this.#failures.inc({ channel, class: kind });
  }
}

/** Metrics of events that are sent to tenants' own systems. */
export class EventMetrics {
  readonly #tries: Counter<'type' | 'outcome'>;

  constructor(registry: Registry) {
    this.#tries = new Counter({
      name: 'concierge_events_total',
      help: 'Tries at sending an event: sent, failed (to be tried again), dead (given up)',
      labelNames: ['type', 'outcome'],
      registers: [registry],
    });
  }

  tried(type: EventType, outcome: 'sent' | 'failed' | 'dead'): void {
    this.#tries.inc({ type, outcome });
  }
}
