import { routes, type TurnView } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { listSpans, measureTurn, writeTurn, type TurnSpan } from '../../../src/turn-life.ts';
import { Button, CopyButton } from '../parts/button.tsx';
import { channelLabel } from '../parts/choice.tsx';
import { RetryIcon } from '../parts/icons.tsx';
import { Page, Section, Tile } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { useNow } from '../parts/times.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { ChangeProblem, Done, StatusBadge, useCanChange } from './owner-parts.tsx';

const LIVE_LOOK_MS = 5000;

/** The life of one turn: from its acceptance to what was sent, with times, tokens and money. */
export function TurnPage({ id }: { readonly id: string }): ReactNode {
  const { turn: words } = useWords().owner;
  const first = useRead(routes.getTurn, { params: { id } });
  const isLive = first.data !== undefined && first.data.endedAt === null;
  const query = useRead(routes.getTurn, { params: { id } }, isLive ? { everyMs: LIVE_LOOK_MS } : {});
  return (
    <Page
      title={words.title}
      about={
        <Link href="/turns" className="text-primary underline">
          {words.back}
        </Link>
      }
    >
      <Loaded query={query}>{(turn) => <Life turn={turn} />}</Loaded>
    </Page>
  );
}

function Life({ turn }: { readonly turn: TurnView }): ReactNode {
  const now = useNow(1000);
  const spans = listSpans(turn, now);
  const { owner } = useWords();
  const words = owner.turn;
  return (
    <>
      <div className="flex flex-wrap items-center gap-2">
        <StatusBadge status={turn.status} />
        <span className="text-sm text-muted-foreground">
          {turn.agent} · {channelLabel(turn.channel)} · {owner.turns.origins[turn.origin]}
        </span>
        <code className="text-xs text-muted-foreground wrap-anywhere">{turn.id}</code>
        <CopyButton text={turn.id} label={owner.copyAs('id')} />
        <span className="ml-auto flex flex-wrap items-center gap-2">
          <Link href={`/chat/${turn.contact_id}`} className="text-sm text-primary underline">
            {words.conversation}
          </Link>
          <span className="flex items-center text-sm">
            {words.copyText} <CopyButton text={writeTurn(turn, spans)} label={words.copyText} />
          </span>
        </span>
      </div>
      <Actions turn={turn} />
      <Facts turn={turn} now={now} />
      {turn.waitsFor !== undefined && (
        <p className="rounded-xl bg-warn-soft px-4 py-3 text-sm text-warn">
          {words.waits}: {turn.waitsFor.why} {turn.waitsFor.startsWhen}
        </p>
      )}
      {turn.error !== null && (
        <p role="alert" className="rounded-xl bg-danger-soft px-4 py-3 text-sm text-danger">
          <strong>{turn.error.code}</strong>: {turn.error.message}
        </p>
      )}
      {turn.input !== undefined && (
        <Section title={words.asked}>
          <p className="rounded-xl border bg-card px-4 py-3 text-sm whitespace-pre-wrap wrap-anywhere">{turn.input}</p>
        </Section>
      )}
      <Section title={words.timeline}>
        <Waterfall spans={spans} totalMs={measureTurn(turn, now)} />
      </Section>
    </>
  );
}

function Actions({ turn }: { readonly turn: TurnView }): ReactNode {
  const { turn: words } = useWords().owner;
  const canChange = useCanChange();
  const retry = useChange(routes.retryTurn, [routes.getTurn, routes.listTurns]);
  const cancel = useChange(routes.cancelTurn, [routes.getTurn, routes.listTurns]);
  const params = { id: turn.id };
  const made = retry.data;
  const canRetry = canChange && turn.origin === 'api' && (turn.status === 'failed' || turn.status === 'cancelled');
  return (
    <>
      {canRetry && made === undefined && (
        <Button tone="primary" disabled={retry.isPending} onClick={() => retry.mutate({ params })}>
          <RetryIcon /> {words.retry}
        </Button>
      )}
      {canChange && turn.endedAt === null && (
        <Button disabled={cancel.isPending} onClick={() => cancel.mutate({ params })}>
          {words.cancel}
        </Button>
      )}
      {made !== undefined && (
        <Done>
          {words.retried}{' '}
          <Link href={`/turns/${made.id}`} className="underline">
            {words.retriedOpen}
          </Link>
        </Done>
      )}
      <ChangeProblem change={retry} />
      <ChangeProblem change={cancel} />
    </>
  );
}

function Facts({ turn, now }: { readonly turn: TurnView; readonly now: number }): ReactNode {
  const formats = useFormats();
  const { turn: words } = useWords().owner;
  const firstText = turn.firstTextAt === null ? undefined : Date.parse(turn.firstTextAt) - Date.parse(turn.acceptedAt);
  const { inputTokens, outputTokens } = turn.usage;
  return (
    <div className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      <Tile
        label={words.took}
        value={formats.duration(measureTurn(turn, now))}
        note={firstText === undefined ? undefined : words.firstText(formats.duration(firstText))}
      />
      <Tile label={words.cost} value={turn.costUsd == null ? '–' : formats.usd(turn.costUsd)} />
      <Tile
        label={words.tokens}
        value={formats.number(inputTokens + outputTokens)}
        note={words.tokensOf(formats.number(inputTokens), formats.number(outputTokens))}
      />
      <Tile label={words.attempts} value={formats.number(turn.attempts)} note={`${words.accepted} ${formats.time(turn.acceptedAt)}`} />
    </div>
  );
}

const bars: Readonly<Record<TurnSpan['kind'], string>> = {
  waited: 'bg-warn',
  prepared: 'bg-muted-foreground',
  model: 'bg-primary',
  tool: 'bg-ok',
  compaction: 'bg-muted-foreground',
  sent: 'bg-ok',
  rest: 'bg-muted-foreground',
};

/** Each span as a bar at its place in time: a table, so that it reads in order without the picture, too. */
function Waterfall({ spans, totalMs }: { readonly spans: readonly TurnSpan[]; readonly totalMs: number }): ReactNode {
  const words = useWords().owner.turn;
  const formats = useFormats();
  const whole = Math.max(1, totalMs, ...spans.map(({ startMs, durationMs }) => startMs + durationMs));
  const percent = (ms: number): string => `${String((100 * Math.max(0, ms)) / whole)}%`;
  return (
    <div className="overflow-x-auto rounded-xl border bg-card" tabIndex={0} role="region" aria-label={words.timeline}>
      <table className="w-full min-w-136 text-sm">
        <caption className="sr-only">{words.timeline}</caption>
        <thead className="border-b bg-muted/50 text-left text-xs text-muted-foreground">
          <tr>
            <th scope="col" className="w-56 px-3 py-2 font-medium">
              {words.step}
            </th>
            <th scope="col" className="px-3 py-2 font-medium">
              {words.from}
            </th>
            <th scope="col" className="w-28 px-3 py-2 text-right font-medium">
              {words.lasts}
            </th>
          </tr>
        </thead>
        <tbody>
          {spans.map((span, index) => (
            <tr key={String(index)} className="border-b last:border-b-0">
              <th scope="row" className="px-3 py-1.5 text-left font-normal wrap-anywhere">
                <SpanName span={span} />
              </th>
              <td className="px-3 py-1.5">
                <span className="sr-only">{formats.duration(Math.max(0, span.startMs))}</span>
                <span className="block h-3 rounded bg-muted" aria-hidden="true">
                  <span
                    className={`block h-3 min-w-0.5 rounded ${span.isError ? 'bg-danger' : bars[span.kind]}`}
                    style={{ marginLeft: percent(Math.min(span.startMs, whole)), width: percent(span.durationMs) }}
                  />
                </span>
              </td>
              <td className="px-3 py-1.5 text-right whitespace-nowrap tabular-nums">{formats.duration(span.durationMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SpanName({ span }: { readonly span: TurnSpan }): ReactNode {
  const words = useWords().owner.turn;
  const formats = useFormats();
  const { kind, name, within, tokens, isError } = span;
  return (
    <>
      <span className={within === undefined ? '' : 'pl-4'}>
        <span className="text-muted-foreground">{words[kind]}</span> {name}
      </span>
      {isError && <span className="ml-1 text-danger">{words.failed}</span>}
      {tokens !== undefined && (
        <span className="block text-xs text-muted-foreground">
          {words.tokensOf(formats.number(tokens.input), formats.number(tokens.output))}
        </span>
      )}
    </>
  );
}
