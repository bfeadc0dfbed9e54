import type { TraceSpan, TurnTrace } from './trace.ts';

/** From the first thing that is known of a turn to its end, or to its last span while it has none. */
export function measureTrace({ spans, acceptedAt, endedAt }: Pick<TurnTrace, 'spans' | 'acceptedAt' | 'endedAt'>): {
  readonly fromMs: number;
  readonly tookMs: number;
} {
  const ends = spans.map(({ at, durationMs }) => Date.parse(at) + (durationMs ?? 0));
  const fromMs = Math.min(Date.parse(acceptedAt), ...spans.map(({ at }) => Date.parse(at)));
  return { fromMs, tookMs: Math.max(0, (endedAt === null ? Math.max(fromMs, ...ends) : Date.parse(endedAt)) - fromMs) };
}

/** A turn's life as plain text, for a terminal or a ticket: its facts, and one line for each span. */
export function writeTrace(trace: TurnTrace): string {
  const { id, contact_id: session, agent, channel, origin, status, attempts, usage, costUsd, error, waitsFor, acceptedAt, endedAt } = trace;
  const { fromMs, tookMs } = measureTrace(trace);
  const cost = costUsd == null ? '' : `  ${writeMoney(costUsd)}`;
  const facts = [
    `Turn ${id}  ${agent} · ${channel} · ${origin}  ${status}${endedAt === null ? '' : ` in ${writeMs(tookMs)}`}`,
    `attempts ${String(attempts)}  ${writeTokens(usage)}${cost}`,
    `session ${session}`,
    `accepted ${acceptedAt}  ended ${endedAt ?? '-'}`,
    ...(waitsFor === undefined ? [] : [`waits: ${waitsFor.why} ${waitsFor.startsWhen}`]),
    ...(error === null ? [] : [`error ${error.code}: ${error.message}`]),
  ];
  return [...facts, '', ...trace.spans.map((span) => writeSpan(span, fromMs))].join('\n');
}

function writeSpan(span: TraceSpan, fromMs: number): string {
  const begin = writeMs(Date.parse(span.at) - fromMs).padStart(10);
  const lasts = (span.durationMs === null ? '' : writeMs(span.durationMs)).padStart(10);
  const name = `${span.within === undefined ? '' : '└ '}${span.kind} ${span.name}`.trim();
  return `${begin} ${lasts}  ${[name, ...listDetails(span)].join('  ')}`;
}

function listDetails(span: TraceSpan): string[] {
  const { within, parts = [], part, tries = 1, isError } = span;
  return [
    within === undefined ? '' : `within ${within}`,
    ...listCallDetails(span),
    parts.map(({ name, tokens }) => `${name} ${String(tokens)}`).join(' · '),
    part === undefined ? '' : `part ${String(part)}`,
    tries === 1 ? '' : `try ${String(tries)}`,
    isError ? 'failed' : '',
  ].filter((text) => text !== '');
}

/** Of a model call. */
function listCallDetails({ inputTokens = 0, outputTokens, cachedInputTokens = 0, ...span }: TraceSpan): string[] {
  const { costUsd, firstTextMs, failedAttempts, fallbackFor } = span;
  const share = Math.round((100 * cachedInputTokens) / Math.max(1, inputTokens));
  const cached = cachedInputTokens === 0 ? '' : ` (cached ${String(share)} %)`;
  return [
    outputTokens === undefined ? '' : `${writeTokens({ inputTokens, outputTokens })}${cached}`,
    costUsd === undefined ? '' : writeMoney(costUsd),
    firstTextMs === undefined ? '' : `first text ${writeMs(firstTextMs)}`,
    failedAttempts === undefined ? '' : `after ${String(failedAttempts)} failed`,
    fallbackFor === undefined ? '' : `in place of ${fallbackFor}`,
  ];
}

function writeTokens({ inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number }): string {
  return `${String(inputTokens)} → ${String(outputTokens)} tokens`;
}

function writeMoney(usd: number): string {
  return `$${usd.toFixed(4)}`;
}

function writeMs(ms: number): string {
  return ms < 10_000 ? `${String(Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
}
