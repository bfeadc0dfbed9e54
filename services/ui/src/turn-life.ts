import type { TurnView } from '@concierge/contract';

/** What a span of a turn is: time that it waited, one thing that was done, or the rest, which left no record. */
export type SpanKind = 'waited' | 'prepared' | 'model' | 'tool' | 'compaction' | 'sent' | 'rest';

/** One line of a turn's life. Times in milliseconds since its acceptance. */
export interface TurnSpan {
  readonly kind: SpanKind;
  /** Of a model, a tool or a channel; empty where the kind says it all. */
  readonly name: string;
  readonly startMs: number;
  readonly durationMs: number;
  readonly isError: boolean;
  /** A command called this tool, within another one. */
  readonly within: string | undefined;
  readonly tokens: { readonly input: number; readonly output: number } | undefined;
}

type LifeFacts = Pick<TurnView, 'acceptedAt' | 'startedAt' | 'endedAt' | 'steps' | 'deliveries'>;

/** What happened to a turn, in order of time: waiting, the prompt, each step, each message that was sent. */
export function listSpans(turn: LifeFacts, nowMs: number): TurnSpan[] {
  const acceptedMs = Date.parse(turn.acceptedAt);
  const plain = { name: '', isError: false, within: undefined, tokens: undefined };
  const steps = (turn.steps ?? []).map((step): TurnSpan => ({
    kind: step.kind === 'tool' || step.kind === 'compaction' ? step.kind : 'model',
    name: step.name,
    startMs: Date.parse(step.startedAt) - acceptedMs,
    durationMs: step.durationMs,
    isError: step.isError,
    within: step.within,
    tokens: step.usage === undefined ? undefined : { input: step.usage.inputTokens, output: step.usage.outputTokens },
  }));
  const startedMs = turn.startedAt === null ? nowMs : Date.parse(turn.startedAt);
  const waited: TurnSpan = { ...plain, kind: 'waited', startMs: 0, durationMs: Math.max(0, startedMs - acceptedMs) };
  const first = steps[0];
  const preparedMs = first === undefined || turn.startedAt === null ? 0 : first.startMs - waited.durationMs;
  const prepared: TurnSpan = { ...plain, kind: 'prepared', startMs: waited.durationMs, durationMs: Math.max(0, preparedMs) };
  const sent = (turn.deliveries ?? []).map((delivery): TurnSpan => ({
    ...plain,
    kind: 'sent',
    name: `${delivery.channel}: ${delivery.state}`,
    startMs: Date.parse(delivery.acceptedAt) - acceptedMs,
    durationMs: Math.max(0, Date.parse(delivery.updatedAt) - Date.parse(delivery.acceptedAt)),
    isError: delivery.state === 'failed',
  }));
  const doneMs = Math.max(waited.durationMs, ...steps.map(({ startMs, durationMs }) => startMs + durationMs));
  const restMs = turn.startedAt === null ? 0 : measureTurn(turn, nowMs) - doneMs;
  const rest: TurnSpan = { ...plain, kind: 'rest', startMs: doneMs, durationMs: restMs };
  return [waited, ...(first === undefined ? [] : [prepared]), ...steps, ...(restMs > 0 ? [rest] : []), ...sent];
}

/** How long a turn has taken, or takes already. */
export function measureTurn({ acceptedAt, endedAt }: Pick<TurnView, 'acceptedAt' | 'endedAt'>, nowMs: number): number {
  return Math.max(0, (endedAt === null ? nowMs : Date.parse(endedAt)) - Date.parse(acceptedAt));
}

/** A turn as plain text, for a ticket: its facts and its spans, one a line. */
export function writeTurn(turn: TurnView, spans: readonly TurnSpan[]): string {
  const facts = [
    `${turn.id}  ${turn.agent}  ${turn.channel}  ${turn.status}  attempts ${String(turn.attempts)}`,
    `accepted ${turn.acceptedAt}  ended ${turn.endedAt ?? '-'}`,
    `tokens ${String(turn.usage.inputTokens)} in, ${String(turn.usage.outputTokens)} out  cost ${turn.costUsd == null ? '-' : `$${String(turn.costUsd)}`}`,
    ...(turn.waitsFor === undefined ? [] : [`waits: ${turn.waitsFor.why}`]),
    ...(turn.error === null ? [] : [`error ${turn.error.code}: ${turn.error.message}`]),
  ];
  return [...facts, '', ...spans.map((span) => writeSpan(span))].join('\n');
}

function writeSpan({ kind, name, startMs, durationMs, isError, within, tokens }: TurnSpan): string {
  const begin = `${String(startMs).padStart(8)} ms  ${String(durationMs).padStart(8)} ms  `;
  const used = tokens === undefined ? '' : `  ${String(tokens.input)} in, ${String(tokens.output)} out`;
  return `${begin}${kind}${name === '' ? '' : ` ${name}`}${within === undefined ? '' : ` (within ${within})`}${used}${isError ? '  failed' : ''}`;
}
