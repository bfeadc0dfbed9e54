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
import type { Providers } from '@concierge/model';
import { Figures } from '@concierge/runtime';
import { turnOutcomes } from '@concierge/runtime/figures';
import { bucketEndsMs, noCounts, type TurnCounts, type TurnRun } from '@concierge/turn';
import type { Counter, Histogram, Registry } from 'prom-client';

/** What a worker may be asked to name: whatever else a tenant names counts as `other`. */
export interface KnownModels {
  readonly model: readonly string[];
  readonly provider: readonly string[];
}

/** The models and providers of the operator's file. */
export function listModels({ default: first, fallbacks, usable, embeddings }: Providers): KnownModels {
  const listed = [...usable].flatMap(([name, { models }]) => Object.keys(models).map((model) => `${name}/${model}`));
  const named = [first, ...fallbacks, ...(embeddings === null ? [] : [embeddings.ref])];
  const model = [...new Set([...named, ...listed])];
  return { model: [...model, 'other'], provider: [...new Set(model.map(toProvider)), 'other'] };
}

/** One failed attempt at a model call. `waitMs`: until the same model is asked again; null: it is not. */
interface ModelFailure {
  readonly model: string;
  readonly kind: string;
  readonly status: number | undefined;
  readonly waitMs: number | null;
  readonly ownKey?: boolean;
}

export interface TurnMetricsOptions {
  /** Undefined: any model is named. */
  readonly known?: KnownModels;
  /** Turns that the worker runs at once. */
  readonly slots?: number;
}

const outcomes: ReadonlySet<string> = new Set(turnOutcomes);

/**
 * Metrics of turns. Labels have few values: agents of the tenant's own count as `other`, and no tenant or session is
 * named. What each figure says is declared in packages/runtime, `figures.ts`.
 */
export class TurnMetrics {
  readonly #known: KnownModels | undefined;
  readonly #turns: Counter;
  readonly #duration: Histogram;
  readonly #firstText: Histogram;
  readonly #waits: Record<'wait' | 'lane' | 'queue', Histogram>;
  readonly #restarts: Counter;
  readonly #fenced: Counter;
  readonly #models: Record<'calls' | 'tokens' | 'cost' | 'failures' | 'requests' | 'retries' | 'fallbacks', Counter>;
  readonly #toolCalls: Counter;
  readonly #toolSeconds: Histogram;
  readonly #compactions: Counter;
  readonly #sandboxes: Counter;
  #counts = noCounts;

  constructor(registry: Registry, running: () => number, { known, slots = 0 }: TurnMetricsOptions = {}) {
    const figures = new Figures(registry);
    this.#known = known;
    this.#turns = figures.counter('concierge_turns_total');
    this.#duration = figures.histogram('concierge_turn_seconds');
    this.#firstText = figures.histogram('concierge_turn_first_text_seconds');
    this.#waits = {
      wait: figures.histogram('concierge_turn_wait_seconds'),
      lane: figures.histogram('concierge_turn_lane_seconds'),
      queue: figures.histogram('concierge_turn_queue_seconds'),
    };
    this.#restarts = figures.counter('concierge_turn_restarts_total');
    this.#fenced = figures.counter('concierge_fenced_writes_total');
    const values = { model: known?.model ?? [], provider: known?.provider ?? [] };
    this.#models = {
      calls: figures.counter('concierge_model_calls_total', values),
      tokens: figures.counter('concierge_model_tokens_total', values),
      cost: figures.counter('concierge_model_cost_usd_total', values),
      failures: figures.counter('concierge_model_failures_total', values),
      requests: figures.counter('concierge_model_requests_total', values),
      retries: figures.counter('concierge_model_retries_total'),
      fallbacks: figures.counter('concierge_model_fallbacks_total'),
    };
    this.#toolCalls = figures.counter('concierge_tool_calls_total');
    this.#toolSeconds = figures.histogram('concierge_tool_seconds');
    this.#compactions = figures.counter('concierge_compactions_total');
    this.#sandboxes = figures.counter('concierge_sandbox_starts_total');
    figures.gauge('concierge_turn_slots').set(slots);
    figures.gauge('concierge_turns_running', (gauge) => {
      gauge.set(running());
    });
  }

  /** One start of a turn. */
  started({ attempt, startedAtMs, wokenAtMs, turn }: Pick<TurnRun, 'attempt' | 'startedAtMs' | 'wokenAtMs' | 'turn'>): void {
    if (attempt > 1) {
      this.#restarts.inc();
      return;
    }
    // Clocks of several machines: a turn never waits for less than nothing.
    const waitMs = Math.max(0, startedAtMs - turn.acceptedAtMs);
    const queueMs = Math.min(waitMs, Math.max(0, startedAtMs - (wokenAtMs ?? startedAtMs)));
    this.#counts = { ...this.#counts, waitedMs: countTime(this.#counts.waitedMs, waitMs) };
    this.#waits.wait.observe(waitMs / 1000);
    this.#waits.lane.observe((waitMs - queueMs) / 1000);
    this.#waits.queue.observe(queueMs / 1000);
  }

  /** What its worker has done since it started: for what is shown over time without Prometheus. */
  readonly counts = (): TurnCounts => this.#counts;

  /** The turn belongs to another worker: what this attempt writes is refused. */
  readonly fenced = (): void => {
    this.#fenced.inc();
  };

  readonly sandboxStarted = (outcome: 'started' | 'failed'): void => {
    this.#sandboxes.inc({ outcome });
  };

  ended({ agent, channel, acceptedAtMs }: Pick<AcceptedTurn, 'agent' | 'channel' | 'acceptedAtMs'>, record: TurnRecord): void {
    // What befalls a tenant's own key is its owner's business: no operator is paged for it.
    const ended = record.failedOnOwnKey === true ? 'own_key_failed' : record.error?.code;
    const outcome = ended ?? record.finishReason ?? record.status;
    const kind = agent === 'admin' || agent === 'cs' ? agent : 'other';
    this.#turns.inc({ agent: kind, channel, outcome: outcomes.has(outcome) ? outcome : 'other' });
    this.#duration.observe((Date.parse(record.endedAt) - acceptedAtMs) / 1000);
    this.#countEnd(record);
    if (record.firstTextAt !== null) this.#firstText.observe((Date.parse(record.firstTextAt) - acceptedAtMs) / 1000);
    for (const used of record.models) if (used.ownKey !== true) this.#answered(used);
    for (const step of record.steps) this.#step(step);
  }

  modelFailed({ model, kind, status, waitMs, ownKey = false }: ModelFailure): void {
    if (ownKey) return;
    this.#models.failures.inc({ model: this.#nameModel(model), kind });
    this.#models.requests.inc({ provider: this.#nameProvider(model), status: toStatusLabel(status) });
    this.#countProvider(model, { failures: 1 });
    if (waitMs === null) this.#models.fallbacks.inc();
    else this.#models.retries.inc();
  }

  #answered({ model: ref, calls, inputTokens, outputTokens, cachedInputTokens, costUsd }: TurnRecord['models'][number]): void {
    const model = this.#nameModel(ref);
    const { calls: answered, tokens, cost, requests } = this.#models;
    answered.inc({ model }, calls);
    requests.inc({ provider: this.#nameProvider(ref), status: '2xx' }, calls);
    tokens.inc({ model, kind: 'input' }, inputTokens);
    tokens.inc({ model, kind: 'output' }, outputTokens);
    tokens.inc({ model, kind: 'cached' }, cachedInputTokens);
    cost.inc({ model }, costUsd ?? 0);
  }

  #step({ kind, name, isError, durationMs }: TurnStepView): void {
    if (kind === 'model' && !isError) this.#countProvider(name, { calls: 1, tookMs: durationMs });
    if (kind === 'compaction') this.#compactions.inc({ kind: name });
    if (kind !== 'tool') return;
    // A name that the model made up must not become a label.
    const tool = toToolLabel(name);
    this.#toolCalls.inc({ tool, outcome: isError ? 'error' : 'ok' });
    this.#toolSeconds.observe({ tool }, durationMs / 1000);
  }

  #countEnd({ startedAt, endedAt, status }: TurnRecord): void {
    const { ended, failed, ranMs, ...rest } = this.#counts;
    const times = startedAt === null ? ranMs : countTime(ranMs, Date.parse(endedAt) - Date.parse(startedAt));
    this.#counts = { ...rest, ended: ended + 1, failed: failed + (status === 'failed' ? 1 : 0), ranMs: times };
  }

  #countProvider(model: string, { calls = 0, failures = 0, tookMs }: { calls?: number; failures?: number; tookMs?: number }): void {
    const provider = this.#nameProvider(model);
    const before = this.#counts.providers[provider] ?? { calls: 0, failures: 0, tookMs: [] };
    const times = tookMs === undefined ? before.tookMs : countTime(before.tookMs, tookMs);
    const now = { calls: before.calls + calls, failures: before.failures + failures, tookMs: times };
    this.#counts = { ...this.#counts, providers: { ...this.#counts.providers, [provider]: now } };
  }

  #nameModel(ref: string): string {
    return this.#known === undefined || this.#known.model.includes(ref) ? ref : 'other';
  }

  #nameProvider(ref: string): string {
    const provider = toProvider(ref);
    return this.#known === undefined || this.#known.provider.includes(provider) ? provider : 'other';
  }
}

/** `openrouter` of `openrouter/meta-llama/llama-4`. */
function toProvider(ref: string): string {
  return ref.slice(0, Math.max(0, ref.indexOf('/')));
}

function toStatusLabel(status: number | undefined): string {
  // What a provider writes into a stream as its code may be any number.
  if (status === undefined || status < 300 || status > 599) return 'none';
  return status === 429 ? '429' : `${String(status).charAt(0)}xx`;
}

function toToolLabel(tool: string): string {
  if (isToolName(tool)) return tool;
  return isMcpToolName(tool) ? 'attached' : 'unknown';
}

/** States in which a message to a channel waits for a redrive. */
const deadStates: ReadonlySet<DeliveryState> = new Set(['failed', 'unknown', 'expired']);

/** Metrics of messages to channels. Labels have few values, and no tenant is named: the log names it. */
export class DeliveryMetrics {
  readonly #ended: Counter;
  readonly #failures: Counter;
  readonly #dead: Counter;

  constructor(registry: Registry) {
    const figures = new Figures(registry);
    this.#ended = figures.counter('concierge_deliveries_total');
    this.#failures = figures.counter('concierge_channel_failures_total');
    this.#dead = figures.counter('concierge_dead_letters_total');
  }

  ended(channel: MessagingChannel, state: DeliveryState): void {
    this.#ended.inc({ channel, state });
    if (deadStates.has(state)) this.#dead.inc({ kind: 'delivery' });
  }

  failed(channel: MessagingChannel, kind: string): void {
    this.#failures.inc({ channel, class: kind });
  }
}

/** Metrics of events that are sent to tenants' own systems. */
export class EventMetrics {
  readonly #tries: Counter;
  readonly #dead: Counter;

  constructor(registry: Registry) {
    const figures = new Figures(registry);
    this.#tries = figures.counter('concierge_events_total');
    this.#dead = figures.counter('concierge_dead_letters_total');
  }

  tried(type: EventType, outcome: 'sent' | 'failed' | 'dead'): void {
    this.#tries.inc({ type, outcome });
    if (outcome === 'dead') this.#dead.inc({ kind: 'event' });
  }
}

/** The same counts with one more time of this length. */
function countTime(buckets: readonly number[], ms: number): number[] {
  const found = bucketEndsMs.findIndex((endMs) => ms <= endMs);
  const place = found === -1 ? bucketEndsMs.length : found;
  return Array.from({ length: Math.max(buckets.length, place + 1) }, (_, index) => (buckets[index] ?? 0) + (index === place ? 1 : 0));
}
