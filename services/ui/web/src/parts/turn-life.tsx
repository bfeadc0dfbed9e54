import { channelNames, measureTrace, writeTrace, type TraceSpan, type TurnTrace } from '@concierge/contract';
import type { ReactNode } from 'react';
import { useFormats, useWords } from '../words/words.tsx';
import { CopyButton } from './button.tsx';
import { channelLabel } from './choice.tsx';
import { Badge, Section, Tile } from './page.tsx';
import { ServiceWords } from './states.tsx';
import { useNow } from './times.tsx';
import { describeTool, ToolName } from './tool-name.tsx';
import { WaitReason } from './wait-reason.tsx';

const tones = { waiting: 'warn', running: 'primary', done: 'ok', failed: 'danger', cancelled: 'plain' } as const;

export interface TurnLifeProps {
  readonly trace: TurnTrace;
  /** Whose turn it is, where that is not clear. */
  readonly tenant?: ReactNode;
  /** Links and buttons. */
  readonly actions?: ReactNode;
  /** Between the facts and the picture. */
  readonly children?: ReactNode;
}

/** The life of one turn, from the arrival of its request to what was read: for its owner and for operators alike. */
export function TurnLife({ trace, tenant, actions, children }: TurnLifeProps): ReactNode {
  const { owner, operate } = useWords();
  const words = owner.turn;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <Badge tone={tones[trace.status]}>{operate.turns.status[trace.status]}</Badge>
        {tenant}
        <span className="text-sm text-muted-foreground">
          {trace.agent} · {channelLabel(trace.channel)} · {owner.turns.origins[trace.origin]}
        </span>
        <code className="text-xs text-muted-foreground wrap-anywhere">{trace.id}</code>
        <CopyButton text={trace.id} label={owner.copyAs('id')} />
        <span className="ml-auto flex flex-wrap items-center gap-2">
          {actions}
          <span className="flex items-center text-sm">
            {words.copyText} <CopyButton text={writeTrace(trace)} label={words.copyText} />
          </span>
        </span>
      </div>
      <Facts trace={trace} />
      {trace.waitsFor !== undefined && (
        <p className="rounded-xl bg-warn-soft px-4 py-3 text-sm text-warn">
          {words.waits}: <WaitReason waitsFor={trace.waitsFor} />
        </p>
      )}
      {trace.error !== null && (
        <p role="alert" className="rounded-xl bg-danger-soft px-4 py-3 text-sm text-danger">
          <strong>{trace.error.code}</strong>: <ServiceWords>{trace.error.message}</ServiceWords>
        </p>
      )}
      {children}
      <Section title={words.timeline}>
        <Waterfall trace={trace} />
      </Section>
    </>
  );
}

/** How long it took, or takes already. */
function useTook(trace: TurnTrace): { readonly fromMs: number; readonly tookMs: number } {
  const now = useNow(1000);
  const measured = measureTrace(trace);
  return trace.endedAt === null ? { ...measured, tookMs: Math.max(0, now - measured.fromMs) } : measured;
}

function Facts({ trace }: { readonly trace: TurnTrace }): ReactNode {
  const formats = useFormats();
  const words = useWords().owner.turn;
  const { tookMs } = useTook(trace);
  const firstText = trace.firstTextAt === null ? undefined : Date.parse(trace.firstTextAt) - Date.parse(trace.acceptedAt);
  const { inputTokens, outputTokens } = trace.usage;
  return (
    <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Tile
        label={words.took}
        value={formats.duration(tookMs)}
        note={firstText === undefined ? undefined : words.firstText(formats.duration(Math.max(0, firstText)))}
      />
      <Tile label={words.cost} value={trace.costUsd == null ? '–' : formats.usd(trace.costUsd)} />
      <Tile
        label={words.tokens}
        value={formats.number(inputTokens + outputTokens)}
        note={words.tokensOf(formats.number(inputTokens), formats.number(outputTokens))}
      />
      <Tile label={words.attempts} value={formats.number(trace.attempts)} note={`${words.accepted} ${formats.time(trace.acceptedAt)}`} />
    </div>
  );
}

const bars: Readonly<Record<TraceSpan['kind'], string>> = {
  received: 'bg-muted-foreground',
  waited: 'bg-warn',
  prompt: 'bg-muted-foreground',
  model: 'bg-primary',
  tool: 'bg-ok',
  compaction: 'bg-muted-foreground',
  saved: 'bg-muted-foreground',
  sent: 'bg-ok',
  delivered: 'bg-ok',
  read: 'bg-ok',
};

/**
 * Each span as a bar at its place in time: a table, so that it reads in order without the picture, too. What comes
 * after the turn's end, such as a receipt hours later, stands at the right edge.
 */
function Waterfall({ trace }: { readonly trace: TurnTrace }): ReactNode {
  const words = useWords().owner.turn;
  const formats = useFormats();
  const { fromMs, tookMs } = useTook(trace);
  const whole = Math.max(1, tookMs);
  const percent = (ms: number): string => `${String((100 * Math.min(Math.max(0, ms), whole)) / whole)}%`;
  return (
    <div className="overflow-x-auto rounded-xl border bg-card" tabIndex={0} role="region" aria-label={words.timeline}>
      <table className="w-full text-sm sm:min-w-136">
        <caption className="sr-only">{words.timeline}</caption>
        <thead className="border-b bg-muted/50 text-left text-xs text-muted-foreground">
          <tr>
            <th scope="col" className="w-40 px-3 py-2 font-medium sm:w-72">
              {words.step}
            </th>
            <th scope="col" className="px-3 py-2 font-medium">
              {words.from}
            </th>
            <th scope="col" className="w-20 px-3 py-2 text-right font-medium sm:w-28">
              {words.lasts}
            </th>
          </tr>
        </thead>
        <tbody>
          {trace.spans.map((span, index) => {
            const startMs = Date.parse(span.at) - fromMs;
            const goesOn = span.kind === 'waited' && span.durationMs === null;
            const lastsMs = goesOn ? Math.max(0, tookMs - startMs) : (span.durationMs ?? 0);
            return (
              <tr key={String(index)} className="border-b align-top last:border-b-0" data-span={span.kind}>
                <th scope="row" className="px-3 py-1.5 text-left font-normal wrap-anywhere">
                  <SpanName span={span} />
                </th>
                <td className="px-3 py-1.5">
                  <span className="sr-only">{formats.duration(Math.max(0, startMs))}</span>
                  <span className="mt-1 block h-3 overflow-hidden rounded bg-muted" aria-hidden="true" title={formats.exactTime(span.at)}>
                    <span
                      className={`block h-3 min-w-0.5 rounded ${span.isError ? 'bg-danger' : bars[span.kind]}`}
                      style={{ marginLeft: `min(${percent(startMs)}, calc(100% - 2px))`, width: percent(lastsMs) }}
                    />
                  </span>
                </td>
                <td className="px-3 py-1.5 text-right whitespace-nowrap tabular-nums">
                  <Lasts span={span} lastsMs={lastsMs} goesOn={goesOn} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A moment has no length: what comes after the end is shown by its time. */
function Lasts({ span, lastsMs, goesOn }: { readonly span: TraceSpan; readonly lastsMs: number; readonly goesOn: boolean }): ReactNode {
  const formats = useFormats();
  const words = useWords().trace;
  if (goesOn) return `${formats.duration(lastsMs)} ${words.goesOn}`;
  if (span.durationMs === null) return <span title={formats.exactTime(span.at)}>{formats.time(span.at)}</span>;
  return formats.duration(lastsMs);
}

function SpanName({ span }: { readonly span: TraceSpan }): ReactNode {
  const words = useWords();
  const details = useDetails(span);
  return (
    <>
      <span className={span.within === undefined ? '' : 'pl-4'}>
        <span className="text-muted-foreground">{words.trace.kinds[span.kind]}</span> <Named span={span} />
      </span>
      {span.isError && <span className="ml-1 text-danger">{words.owner.turn.failed}</span>}
      {details.length > 0 && <span className="block text-xs text-muted-foreground">{details.join(' · ')}</span>}
    </>
  );
}

function Named({ span: { kind, name } }: { readonly span: TraceSpan }): ReactNode {
  const { owner, trace } = useWords();
  switch (kind) {
    case 'tool':
      return <ToolName name={name} />;
    case 'waited':
      return findWord(trace.waits, name);
    case 'received':
      return findWord(owner.turns.origins, name);
    case 'sent':
    case 'delivered':
    case 'read':
      return labelChannel(name);
    case 'compaction':
      return null;
    case 'prompt':
    case 'model':
    case 'saved':
      return name;
  }
}

function findWord(words: Readonly<Record<string, string>>, name: string): string {
  return words[name] ?? name;
}

function labelChannel(name: string): string {
  const channel = channelNames.find((known) => known === name);
  return channel === undefined ? name : channelLabel(channel);
}

function useDetails(span: TraceSpan): readonly string[] {
  const { trace } = useWords();
  const formats = useFormats();
  const { within, parts = [], part, tries = 1 } = span;
  const details = [
    ...useCallDetails(span),
    ...parts.map(({ name, tokens }) => `${findWord(trace.parts, name)} ${formats.number(tokens)}`),
    within !== undefined && trace.within(describeTool(trace, within)),
    part !== undefined && trace.part(part),
    tries > 1 && trace.tries(tries),
  ];
  return details.filter((detail) => detail !== false);
}

/** Of a model call. */
function useCallDetails(span: TraceSpan): readonly (string | false)[] {
  const formats = useFormats();
  const { owner, trace } = useWords();
  const { inputTokens = 0, outputTokens, cachedInputTokens, costUsd, firstTextMs, failedAttempts, fallbackFor } = span;
  return [
    outputTokens !== undefined && owner.turn.tokensOf(formats.number(inputTokens), formats.number(outputTokens)),
    cachedInputTokens !== undefined && trace.cached(formats.percent(cachedInputTokens / Math.max(1, inputTokens))),
    costUsd !== undefined && formats.usd(costUsd),
    firstTextMs !== undefined && trace.firstText(formats.duration(firstTextMs)),
    failedAttempts !== undefined && trace.failedBefore(failedAttempts),
    fallbackFor !== undefined && trace.inPlaceOf(fallbackFor),
  ];
}
