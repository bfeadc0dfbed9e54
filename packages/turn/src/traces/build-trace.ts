import { TRACE_SPANS_MAX, type TraceFacts, type TraceSpan, type TurnStepView, type TurnTrace, type TurnView } from '@concierge/contract';
import { toTurnView, type IndexedTurn } from '@concierge/index';
import type { Delivery } from '@concierge/tenant';

export interface TraceSources {
  /** With its steps. */
  readonly turn: TurnView;
  readonly facts: TraceFacts | undefined;
  readonly deliveries: readonly Delivery[];
}

/** The life of a turn from what its record and its messages keep; what they do not know is left out. */
export function buildTrace({ turn, facts, deliveries }: TraceSources): TurnTrace {
  const { steps = [], deliveries: _deliveries, input: _input, ...shown } = turn;
  const spans = [
    received(turn, facts),
    ...listWaits(turn, facts),
    ...(facts?.prompt === undefined ? [] : [prompt(facts.prompt)]),
    ...steps.map((step) => toSpan(step, facts?.model)),
    ...(turn.endedAt === null ? [] : [moment('saved', '', turn.endedAt)]),
    ...deliveries.flatMap((delivery) => listSent(delivery)),
  ];
  return { ...shown, spans: spans.toSorted((left, right) => Date.parse(left.at) - Date.parse(right.at)).slice(0, TRACE_SPANS_MAX) };
}

/** Of a turn that has ended, before anything of it was sent. */
export function traceRecord(ended: IndexedTurn): TurnTrace {
  const { steps, trace: facts } = ended.record;
  return buildTrace({ turn: { ...toTurnView(ended), steps }, facts, deliveries: [] });
}

function moment(kind: TraceSpan['kind'], name: string, at: string): TraceSpan {
  return { kind, name, at, durationMs: null, isError: false };
}

function received({ origin, acceptedAt }: TurnView, facts: TraceFacts | undefined): TraceSpan {
  if (facts?.receivedAt === undefined) return moment('received', origin, acceptedAt);
  const durationMs = Math.max(0, Date.parse(acceptedAt) - Date.parse(facts.receivedAt));
  return { ...moment('received', origin, facts.receivedAt), durationMs };
}

/** One after the other from the acceptance on; the wait of a turn that has not begun goes on. */
function listWaits({ acceptedAt, waitsFor }: TurnView, facts: TraceFacts | undefined): TraceSpan[] {
  if (waitsFor !== undefined) return [moment('waited', waitsFor.reason, acceptedAt)];
  let fromMs = Date.parse(acceptedAt);
  return (facts?.waits ?? []).map(({ reason, ms }) => {
    const at = new Date(fromMs).toISOString();
    fromMs += ms;
    return { ...moment('waited', reason, at), durationMs: ms };
  });
}

function prompt({ at, ms, parts }: NonNullable<TraceFacts['prompt']>): TraceSpan {
  return { ...moment('prompt', '', at), durationMs: ms, parts };
}

function toSpan(step: TurnStepView, model: string | undefined): TraceSpan {
  const { kind, name, within, startedAt, durationMs, isError, usage, cachedInputTokens, costUsd, firstTextMs, failedAttempts } = step;
  const known = { within, ...usage, cachedInputTokens, costUsd, firstTextMs, failedAttempts };
  const fallback = kind === 'model' && model !== undefined && model !== name ? { fallbackFor: model } : {};
  return { ...moment(toKind(kind), name, startedAt), durationMs, isError, ...withoutUndefined(known), ...fallback };
}

/** A later version may know other steps. */
function toKind(kind: TurnStepView['kind']): TraceSpan['kind'] {
  return kind === 'tool' || kind === 'compaction' ? kind : 'model';
}

function withoutUndefined<Facts extends object>(facts: Facts): Facts;
function withoutUndefined(facts: object): object {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

/** Each part that was sent, and its receipts. */
function listSent({ message, steps, parts }: TraceSources['deliveries'][number]): TraceSpan[] {
  const isSplit = (parts?.length ?? 0) > 1;
  const about = (part: number): Partial<TraceSpan> => ({ deliveryId: message.id, ...(isSplit && { part: part + 1 }) });
  return steps.flatMap((step): TraceSpan[] => {
    if (step.kind === 'result') {
      const at = step.begunAt ?? step.at;
      const durationMs = Math.max(0, Date.parse(step.at) - Date.parse(at));
      const isError = step.outcome !== 'sent';
      return [{ ...moment('sent', message.channel, at), durationMs, isError, ...about(step.part), tries: step.try }];
    }
    if (step.kind === 'end') return [{ ...moment('sent', message.channel, step.at), isError: true, deliveryId: message.id }];
    if (step.kind !== 'receipt' || step.state === 'sent') return [];
    if (step.state === 'failed') return [{ ...moment('sent', message.channel, step.at), isError: true, ...about(step.part) }];
    const kind = step.state === 'delivered' ? 'delivered' : 'read';
    return [{ ...moment(kind, message.channel, step.at), ...about(step.part) }];
  });
}
