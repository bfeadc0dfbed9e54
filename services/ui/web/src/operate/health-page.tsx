import { routes, type Health } from '@concierge/contract';
import type { ReactNode } from 'react';
import { SaidDetail } from '../parts/coded-words.tsx';
import { AlertIcon, CheckIcon } from '../parts/icons.tsx';
import { Badge, Page, Section } from '../parts/page.tsx';
import { Empty, Loaded } from '../parts/states.tsx';
import { Table } from '../parts/table.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useFormats, useWords } from '../words/words.tsx';
import { SLOW_MS } from './shared.tsx';

/** From this share on, room that is used up is a warning. */
const FULL_SHARE = 0.8;

/** What the service needs, and whether it has it. */
export function HealthPage(): ReactNode {
  const words = useWords().operate;
  const health = useRead(routes.getHealth, {}, { everyMs: SLOW_MS });
  return (
    <Page title={words.nav.health} about={words.health.about}>
      <Loaded query={health}>
        {(now) => (
          <>
            <p role="status" className="flex items-center gap-2 rounded-xl border bg-card px-4 py-3 font-medium">
              {now.status === 'ready' ? (
                <CheckIcon className="size-4 shrink-0 text-ok" />
              ) : (
                <AlertIcon className="size-4 shrink-0 text-danger" />
              )}
              {words.health.status[now.status]}
            </p>
            <Checks checks={now.checks} />
            <Findings findings={now.findings} />
            <Providers providers={now.providers} />
            <Section title={words.health.room}>
              <div className="grid gap-3 sm:grid-cols-2">
                <Room label={words.health.redis} used={now.redis?.usedBytes} size={now.redis?.maxBytes} />
                <Room
                  label={words.health.disk}
                  used={now.disk === null ? undefined : now.disk.sizeBytes - now.disk.freeBytes}
                  size={now.disk?.sizeBytes}
                />
              </div>
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Checks({ checks }: { readonly checks: Health['checks'] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const known: Readonly<Record<string, string>> = words.health.checks;
  return (
    <Section title={words.health.needs}>
      <Table
        caption={words.health.needs}
        rows={Object.entries(checks)}
        keyOf={([name]) => name}
        columns={[
          { label: words.health.what, cell: ([name]) => known[name] ?? name },
          {
            label: words.state,
            cell: ([, { ok }]) => <Badge tone={ok ? 'ok' : 'danger'}>{ok ? words.health.works : words.health.fails}</Badge>,
          },
          { label: words.health.took, align: 'end', cell: ([, { ms }]) => formats.duration(ms) },
        ]}
      />
    </Section>
  );
}

const tones = { ok: 'ok', warning: 'warn', failed: 'danger' } as const;

/** What `concierge doctor` says of the whole deployment. */
function Findings({ findings }: { readonly findings: Health['findings'] }): ReactNode {
  const words = useWords().operate;
  const names: Readonly<Record<string, string>> = words.health.parts;
  return (
    <Section title={words.health.findings}>
      <Table
        caption={words.health.findings}
        rows={findings}
        keyOf={({ name }) => name}
        columns={[
          { label: words.health.what, cell: ({ name }) => names[name] ?? name },
          { label: words.state, cell: ({ status }) => <Badge tone={tones[status]}>{words.health.found[status]}</Badge> },
          {
            label: words.health.detail,
            cell: ({ detail, said }) => (
              <span className="wrap-anywhere">
                <SaidDetail detail={detail} said={said} />
              </span>
            ),
          },
        ]}
      />
    </Section>
  );
}

/** What they did in the last quarter of an hour. */
function Providers({ providers }: { readonly providers: Health['providers'] }): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  const time = (ms: number | null): string => (ms === null ? '–' : formats.duration(ms));
  return (
    <Section title={words.health.providers}>
      {providers.length === 0 ? (
        <Empty title={words.health.noProviders} />
      ) : (
        <Table
          caption={words.health.providers}
          rows={providers}
          keyOf={({ provider }) => provider}
          columns={[
            { label: words.health.provider, cell: ({ provider }) => provider },
            { label: words.health.calls, align: 'end', cell: ({ calls }) => formats.number(calls) },
            {
              label: words.health.failures,
              align: 'end',
              cell: ({ calls, failures }) => (
                <span className={failures > 0 ? 'text-danger' : ''}>
                  {formats.number(failures)} ({formats.percent(failures / Math.max(1, calls + failures))})
                </span>
              ),
            },
            { label: 'p50', align: 'end', cell: ({ p50Ms }) => time(p50Ms) },
            { label: 'p95', align: 'end', cell: ({ p95Ms }) => time(p95Ms) },
          ]}
        />
      )}
    </Section>
  );
}

interface RoomProps {
  readonly label: string;
  readonly used: number | undefined;
  /** 0: no limit. */
  readonly size: number | undefined;
}

function Room({ label, used, size }: RoomProps): ReactNode {
  const words = useWords().operate;
  const formats = useFormats();
  if (used === undefined || size === undefined) {
    return (
      <p className="rounded-xl border bg-card px-4 py-3 text-sm">
        {label}: <span className="text-danger">{words.health.unknown}</span>
      </p>
    );
  }
  const share = size === 0 ? 0 : used / size;
  const text =
    size === 0
      ? words.health.noLimit(formats.bytes(used))
      : words.health.of(formats.bytes(used), formats.bytes(size), formats.percent(share));
  return (
    <div className="rounded-xl border bg-card px-4 py-3 text-sm">
      <p className="font-medium">{label}</p>
      <p className={share > FULL_SHARE ? 'text-warn' : 'text-muted-foreground'}>{text}</p>
      {size > 0 && <meter aria-label={label} className="mt-1 w-full" min={0} max={1} high={FULL_SHARE} value={share} />}
    </div>
  );
}
