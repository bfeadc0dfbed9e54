import { DAY_MS, routes, type TurnView } from '@concierge/contract';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { previewMessage } from '../../../src/chat/preview-message.ts';
import { channelLabel } from '../parts/choice.tsx';
import { AlertIcon, CheckIcon } from '../parts/icons.tsx';
import { Badge, Page, Section, Tile, type TileProps } from '../parts/page.tsx';
import { Empty, Loaded, ServiceWords } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { toChannelSlug, toWallTime } from './owner-parts.tsx';

const SHOWN = 5;
/** Read at most: more than these since yesterday are shown as so many and more. */
const FAILED_READ = 50;
const card = 'block rounded-xl border bg-card px-4 py-2.5 text-sm hover:bg-muted/50';

/** What needs the owner, what comes next, and what it costs. */
export function TodayPage(): ReactNode {
  const words = useWords();
  const { today } = words.owner;
  const whoAmI = useRead(routes.whoAmI);
  const begun = useRead(routes.listSessions, { query: { limit: 1 } });
  return (
    <Page title={today.title} about={today.about}>
      {whoAmI.data?.demoModel === true && (
        <p className="flex items-start gap-2 rounded-xl bg-warn-soft px-4 py-3 text-sm text-warn">
          <AlertIcon className="mt-0.5 size-4 shrink-0" /> {today.demo}
        </p>
      )}
      {begun.data?.length === 0 && (
        <FirstSteps hasModel={negate(whoAmI.data?.demoModel)} hasName={whoAmI.data && whoAmI.data.name !== null} />
      )}
      <Tiles />
      <div className="grid gap-5 lg:grid-cols-2">
        <Waiting />
        <Failed />
        <NextSchedules />
        <ChannelProblems />
      </div>
    </Page>
  );
}

/** Undefined as long as it is not known. */
type Known<Value> = Value | undefined;

const negate = (known: Known<boolean>): Known<boolean> => (known === undefined ? undefined : !known);

interface FirstStepsProps {
  readonly hasModel: Known<boolean>;
  readonly hasName: Known<boolean>;
}

/** Comes along with each tenant. */
const STARTER_SKILL = 'take-notes';

/** An empty install: what to do, and what of it is done. */
function FirstSteps({ hasModel, hasName }: FirstStepsProps): ReactNode {
  const { today } = useWords().owner;
  const skills = useRead(routes.listSkills);
  const widget = useRead(routes.getWidget);
  const channels = useRead(routes.listChannels);
  const steps = [
    { label: today.step.name, isDone: hasName, path: '/settings' },
    { label: today.step.model, isDone: hasModel, path: '/agents' },
    { label: today.step.skill, isDone: skills.data?.some(({ name }) => name !== STARTER_SKILL), path: '/files' },
    { label: today.step.widget, isDone: widget.data?.enabled, path: '/settings' },
    { label: today.step.channel, isDone: channels.data && channels.data.length > 0, path: '/channels' },
    { label: today.step.talk, isDone: false, path: '/chat' },
  ];
  return (
    <Section title={today.steps} about={today.stepsAbout}>
      <ol className="grid gap-2 sm:grid-cols-2 lg:grid-cols-3">
        {steps.map(({ label, isDone, path }) => (
          <li key={label}>
            <Link href={path} className={`${card} flex items-center gap-2`}>
              {isDone === true ? <CheckIcon className="size-4 text-ok" /> : <span className="size-4 rounded-full border-2" />}
              <span className="flex-1">{label}</span>
              <span className="text-xs text-muted-foreground">{isDone === undefined ? '–' : isDone ? today.stepDone : today.stepOpen}</span>
            </Link>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function useFailed(): { readonly query: ReturnType<typeof useRead<typeof routes.listTurns>>; readonly recent: readonly TurnView[] } {
  const [sinceMs] = useState(() => Date.now() - DAY_MS);
  const query = useRead(routes.listTurns, { query: { status: 'failed', limit: FAILED_READ } });
  return { query, recent: (query.data ?? []).filter(({ acceptedAt }) => Date.parse(acceptedAt) >= sinceMs) };
}

function useChannelProblems() {
  const query = useRead(routes.listChannels);
  return { query, broken: (query.data ?? []).filter(({ state, lastError }) => state !== 'enabled' || lastError !== null) };
}

/** What the month has cost so far, against its budget where there is one. */
function useMonth(): Pick<TileProps, 'value' | 'note'> {
  const { today, notKnown } = useWords().owner;
  const formats = useFormats();
  const [from] = useState(() => `${new Date().toISOString().slice(0, 'YYYY-MM'.length)}-01`);
  const { data: usage, error } = useRead(routes.getUsage, { query: { from } });
  if (usage === undefined) return { value: '–', note: error === null ? undefined : notKnown };
  const { costUsd, inputTokens, outputTokens } = usage.total;
  const budget = usage.budgets?.items.find(({ period, unit }) => period === 'month' && unit === 'usd');
  const value = costUsd === null ? '–' : formats.usd(costUsd);
  if (budget !== undefined) return { value, note: today.budget(formats.usd(budget.spent), formats.usd(budget.limit)) };
  return { value, note: costUsd === null ? today.noPrice : today.tokens(formats.number(inputTokens + outputTokens)) };
}

interface Counted {
  readonly query: { readonly data: unknown; readonly error: unknown };
  readonly number: number;
  /** More than these are not asked for. */
  readonly atMost: number;
  /** Of any number but 0. */
  readonly tone: 'warn' | 'danger';
}

/** A number, once it is known: before that, and where it cannot be had, there is none, rather than a 0. */
function useCount(): (counted: Counted) => Pick<TileProps, 'value' | 'note' | 'tone'> {
  const { notKnown } = useWords().owner;
  const formats = useFormats();
  return ({ query: { data, error }, number, atMost, tone }) =>
    data === undefined
      ? { value: '–', note: error === null ? undefined : notKnown }
      : { value: `${formats.number(number)}${number >= atMost ? '+' : ''}`, tone: number > 0 ? tone : 'plain' };
}

function Tiles(): ReactNode {
  const { today } = useWords().owner;
  const count = useCount();
  const handoffs = useRead(routes.listHandoffs, { query: { limit: SHOWN } });
  const failed = useFailed();
  const problems = useChannelProblems();
  const month = useMonth();
  const waiting = { query: handoffs, number: handoffs.data?.length ?? 0, atMost: SHOWN, tone: 'warn' } as const;
  const failures = { query: failed.query, number: failed.recent.length, atMost: FAILED_READ, tone: 'danger' } as const;
  const broken = { query: problems.query, number: problems.broken.length, atMost: Infinity, tone: 'danger' } as const;
  const tiles: readonly (TileProps & { readonly path: string })[] = [
    { path: '/inbox?show=waiting', label: today.waiting, ...count(waiting) },
    { path: '/turns?status=failed', label: today.failed, ...count(failures) },
    { path: '/usage', label: today.cost, ...month },
    { path: '/channels', label: today.channels, ...count(broken) },
  ];
  return (
    <ul className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      {tiles.map(({ path, ...tile }) => (
        <li key={path}>
          <Link href={path} className="block h-full rounded-xl">
            <Tile {...tile} />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Waiting(): ReactNode {
  const { today } = useWords().owner;
  const query = useRead(routes.listHandoffs, { query: { limit: SHOWN } });
  return (
    <Section title={today.waitingTitle}>
      <Loaded query={query}>
        {(handoffs) =>
          handoffs.length === 0 ? (
            <Empty title={today.waitingNone} />
          ) : (
            <ul className="space-y-2">
              {handoffs.map(({ id, sessionId, title, reason, since, lastMessage }) => (
                <li key={id}>
                  <Link href={`/inbox/${sessionId}`} className={card}>
                    <span className="flex justify-between gap-3">
                      <span className="truncate font-medium">{title ?? sessionId}</span>
                      <RelativeTime at={since} />
                    </span>
                    <span className="line-clamp-2 text-muted-foreground">
                      {lastMessage === null || lastMessage.text === '' ? reason : previewMessage(lastMessage)}
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function Failed(): ReactNode {
  const { today } = useWords().owner;
  const { query, recent } = useFailed();
  return (
    <Section title={today.failedTitle}>
      <Loaded query={query}>
        {() =>
          recent.length === 0 ? (
            <Empty title={today.failedNone} />
          ) : (
            <ul className="space-y-2">
              {recent.slice(0, SHOWN).map(({ id, input, error, acceptedAt }) => (
                <li key={id}>
                  <Link href={`/turns/${id}`} className={card}>
                    <span className="flex justify-between gap-3">
                      <span className="truncate font-medium">{input ?? id}</span>
                      <RelativeTime at={acceptedAt} />
                    </span>
                    <span className="line-clamp-2 text-danger">
                      <ServiceWords>{error?.message}</ServiceWords>
                    </span>
                  </Link>
                </li>
              ))}
              <li>
                <Link href="/turns?status=failed" className="text-sm text-primary underline">
                  {today.failedMore}
                </Link>
              </li>
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function NextSchedules(): ReactNode {
  const { today } = useWords().owner;
  const formats = useFormats();
  const query = useRead(routes.listSchedules);
  return (
    <Section title={today.nextTitle}>
      <Loaded query={query}>
        {(schedules) => {
          const next = schedules
            .flatMap(({ id, name, agent, nextRunAt, nextRuns: [inZone] }) =>
              nextRunAt === null || inZone === undefined ? [] : [{ id, name, agent, nextRunAt, inZone }],
            )
            .toSorted((one, other) => one.nextRunAt.localeCompare(other.nextRunAt));
          if (next.length === 0) return <Empty title={today.nextNone} />;
          return (
            <ul className="space-y-2">
              {next.slice(0, SHOWN).map(({ id, name, agent, inZone }) => (
                <li key={id}>
                  <Link href={`/schedules/${id}`} className={`${card} flex justify-between gap-3`}>
                    <span className="truncate font-medium">{name}</span>
                    <span className="text-muted-foreground">
                      {agent} · {formats.time(toWallTime(inZone))}
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Section>
  );
}

function ChannelProblems(): ReactNode {
  const words = useWords();
  const { today, channels } = words.owner;
  const { query, broken } = useChannelProblems();
  return (
    <Section title={today.channelTitle}>
      <Loaded query={query}>
        {(all) =>
          all.length === 0 ? (
            <Empty title={channels.notConnected}>
              <Link href="/channels" className="text-primary underline">
                {today.step.channel}
              </Link>
            </Empty>
          ) : (
            <ul className="space-y-2">
              {(broken.length === 0 ? all : broken).map(({ channel, state, reason, lastError }) => (
                <li key={channel}>
                  <Link href={`/channels/${toChannelSlug(channel)}`} className={card}>
                    <span className="flex items-center gap-2">
                      <span className="flex-1 font-medium">{channelLabel(channel)}</span>
                      <Badge tone={state === 'enabled' ? 'ok' : 'danger'}>{channels.states[state]}</Badge>
                    </span>
                    {reason !== null && (
                      <span className="block text-muted-foreground">
                        <ServiceWords>{reason}</ServiceWords>
                      </span>
                    )}
                    {lastError !== null && <span className="block text-danger">{today.lastError(lastError.message)}</span>}
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}
