import { MINUTE_MS, routes, sumFailures, type FailureGroup, type Overview } from '@concierge/contract';
import { lazy, Suspense, type ReactNode } from 'react';
import { Link } from 'wouter';
import { Page, Section, Tile } from '../parts/page.tsx';
import { Empty, Loaded, Loading } from '../parts/states.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { LIVE_MS, SLOW_MS, TenantLink, useSince } from './shared.tsx';

/** Loaded when the page is there: what is wrong now comes first. */
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }));

const RECENT_MS = 15 * MINUTE_MS;
const CAUSES_SHOWN = 5;

/** Whether something is wrong, in one sentence and four numbers, each of which leads to what is behind it. */
export function NowPage(): ReactNode {
  const words = useWords().operate;
  const overview = useRead(routes.getOverview, {}, { everyMs: LIVE_MS });
  const since = useSince(RECENT_MS);
  const recent = useRead(routes.listFailures, { query: { since } }, { everyMs: SLOW_MS });
  const day = useRead(routes.listFailures, {}, { everyMs: SLOW_MS });
  return (
    <Page title={words.nav.now} about={words.now.about}>
      <Loaded query={overview}>
        {(now) => (
          <>
            <p role="status" className="rounded-xl border bg-card px-4 py-3 font-medium wrap-anywhere">
              <Summary now={now} />
            </p>
            <Tiles now={now} failed={recent.data} />
            <Reasons now={now} />
          </>
        )}
      </Loaded>
      <Suspense fallback={<Loading />}>
        <Charts />
      </Suspense>
      <Section title={words.now.failures}>
        <Loaded query={day}>{(groups) => <Causes groups={sumFailures(groups)} />}</Loaded>
      </Section>
    </Page>
  );
}

function Summary({ now }: { readonly now: Overview }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const { longest } = now;
  if (longest !== null) {
    const waited = formats.duration(longest.waitedSeconds * 1000);
    return words.now.waits({ summary: now.summary, tenant: longest.tenantId, waited, reason: words.reasons[longest.reason] });
  }
  if (now.workers.running === 0) return words.now.noWorker;
  const waiting = now.reasons.reduce((sum, { turns }) => sum + turns, 0);
  return words.now.well(waiting === 0 ? undefined : formats.number(waiting));
}

function Tiles({ now, failed }: { readonly now: Overview; readonly failed: readonly FailureGroup[] | undefined }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const waiting = now.reasons.reduce((sum, { turns }) => sum + turns, 0);
  const oldestSeconds = Math.max(0, ...now.reasons.map((reason) => reason.oldestSeconds ?? 0));
  const failures = failed?.reduce((sum, { turns }) => sum + turns, 0);
  const workers = now.workers.running + now.workers.draining + now.workers.stalled;
  const tiles = [
    { href: '/operate/waiting', label: words.nav.waiting, value: formats.number(waiting), note: words.now.turns(waiting) },
    {
      href: '/operate/waiting',
      label: words.now.oldest,
      value: waiting === 0 ? '–' : formats.duration(oldestSeconds * 1000),
      note: words.now.oldestNote,
    },
    {
      href: '/operate/workers',
      label: words.now.running,
      value: `${formats.number(now.running)} / ${formats.number(now.slots)}`,
      note: words.now.workers(workers),
      tone: now.workers.running === 0 ? 'danger' : 'plain',
    },
    {
      href: '/operate/failures',
      label: words.now.failed,
      value: failures === undefined ? '–' : formats.number(failures),
      note: words.now.failedNote,
      tone: failures !== undefined && failures > 0 ? 'danger' : 'plain',
    },
  ] as const;
  return (
    <ul className="grid grid-cols-2 gap-3 lg:grid-cols-4">
      {tiles.map(({ href, ...tile }) => (
        <li key={tile.label}>
          <Link href={href} className="block h-full rounded-xl hover:opacity-80">
            <Tile {...tile} />
          </Link>
        </li>
      ))}
    </ul>
  );
}

function Reasons({ now }: { readonly now: Overview }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const most = Math.max(1, ...now.reasons.map(({ turns }) => turns));
  return (
    <Section title={words.now.why}>
      <ul className="grid gap-x-8 gap-y-1 rounded-xl border bg-card p-4 sm:grid-cols-2">
        {now.reasons.map(({ reason, turns, oldestSeconds }) => (
          <li key={reason}>
            <Link
              href={`/operate/waiting?reason=${reason}`}
              className={`grid grid-cols-[1fr_auto] items-baseline gap-x-3 rounded py-1 text-sm hover:underline ${turns === 0 ? 'text-muted-foreground' : ''}`}
            >
              <span>{words.reasons[reason]}</span>
              <span className="tabular-nums">
                {formats.number(turns)}
                {oldestSeconds === null ? '' : ` · ${formats.duration(oldestSeconds * 1000)}`}
              </span>
              <meter aria-hidden="true" className="col-span-2 h-1.5 w-full" min={0} max={most} value={turns} />
            </Link>
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Causes({ groups }: { readonly groups: readonly FailureGroup[] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  if (groups.length === 0) return <Empty title={words.failures.none} />;
  return (
    <ul className="divide-y rounded-xl border bg-card">
      {groups.slice(0, CAUSES_SHOWN).map((group) => (
        <li key={`${group.code} ${group.model ?? ''} ${group.message}`} className="flex flex-wrap items-baseline gap-x-3 px-4 py-2 text-sm">
          <span className="min-w-8 font-semibold text-danger tabular-nums">{formats.number(group.turns)}</span>
          <Link href={`/operate/failures?code=${encodeURIComponent(group.code)}`} className="min-w-0 flex-1 wrap-anywhere hover:underline">
            <code className="font-mono text-xs">{group.code}</code> {group.message}
          </Link>
          <span className="text-xs text-muted-foreground">
            <TenantLink tenant={group.example.tenantId} />
            {group.tenants.length > 1 && ` +${formats.number(group.tenants.length - 1)}`} · <RelativeTime at={group.lastAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}
