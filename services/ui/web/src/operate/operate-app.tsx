import { ConciergeClient, ConciergeError } from '@concierge/client';
import { routes } from '@concierge/contract';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, useEffect, useMemo, useState, type ReactNode } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { JsonClient } from '../../../src/json-client.ts';
import {
  AlertIcon,
  BuildingIcon,
  ClockIcon,
  EnvelopeIcon,
  ExternalIcon,
  HeartIcon,
  ListIcon,
  PulseIcon,
  RetryIcon,
  SearchIcon,
  WorkerIcon,
} from '../parts/icons.tsx';
import { Page } from '../parts/page.tsx';
import { Loading, Problem } from '../parts/states.tsx';
import { ApiProvider, FedPages, isSignedOut, useApi, useRead } from '../parts/use-api.tsx';
import { useRecovery } from '../parts/use-recovery.ts';
import { NotFound } from '../shell/not-found.tsx';
import { Shell, type NavigationItem } from '../shell/shell.tsx';
import { SignInForm } from '../sign-in/sign-in-form.tsx';
import { TabMessages } from '../sign-in/tab-messages.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { LIVE_MS } from './shared.tsx';
import { useOperatorFeed } from './use-operator-feed.ts';

const NowPage = lazy(async () => ({ default: (await import('./now-page.tsx')).NowPage }));
const WaitingPage = lazy(async () => ({ default: (await import('./waiting-page.tsx')).WaitingPage }));
const TurnsPage = lazy(async () => ({ default: (await import('./turns-page.tsx')).TurnsPage }));
const TurnPage = lazy(async () => ({ default: (await import('./turn-page.tsx')).TurnPage }));
const FailuresPage = lazy(async () => ({ default: (await import('./failures-page.tsx')).FailuresPage }));
const WorkersPage = lazy(async () => ({ default: (await import('./workers-page.tsx')).WorkersPage }));
const DeliveriesPage = lazy(async () => ({ default: (await import('./deliveries-page.tsx')).DeliveriesPage }));
const TenantsPage = lazy(async () => ({ default: (await import('./tenants-page.tsx')).TenantsPage }));
const TenantPage = lazy(async () => ({ default: (await import('./tenant-page.tsx')).TenantPage }));
const HealthPage = lazy(async () => ({ default: (await import('./health-page.tsx')).HealthPage }));
const LogsPage = lazy(async () => ({ default: (await import('./logs-page.tsx')).LogsPage }));
const AuditPage = lazy(async () => ({ default: (await import('./audit-page.tsx')).AuditPage }));

/** The pages of operators, behind their sign-in where a token is set. */
export function OperateApp(): ReactNode {
  const api = useMemo(() => new JsonClient(new ConciergeClient({})), []);
  return (
    <ApiProvider value={api}>
      <Gate />
    </ApiProvider>
  );
}

/** Asks for what every page shows: the answer says whether there is a sign-in, and whether one is needed. */
function Gate(): ReactNode {
  const words = useWords();
  const queries = useQueryClient();
  const [tabs] = useState(() => new TabMessages('concierge.operator', () => void queries.resetQueries()));
  useEffect(() => () => tabs.close(), [tabs]);
  const [isFed, setFed] = useState(false);
  const overview = useRead(routes.getOverview, {}, isFed ? {} : { everyMs: LIVE_MS });
  const isIn = overview.data !== undefined && !isSignedOut(overview.error);
  useOperatorFeed(isIn, setFed);
  useRecovery();
  const signedIn = (): void => {
    tabs.send();
    void queries.resetQueries();
  };
  if (isSignedOut(overview.error)) return <OperatorSignIn onSignedIn={signedIn} />;
  if (overview.data !== undefined) {
    return (
      <FedPages value={isFed}>
        <OperatorPages waiting={countWaiting(overview.data.reasons)} onSignedOut={signedIn} />
      </FedPages>
    );
  }
  if (overview.error === null) return <Loading />;
  const isElsewhere = ConciergeError.from(overview.error).status === 404;
  return (
    <Page title={words.operate.title} about={isElsewhere ? words.operate.elsewhere : undefined}>
      <Problem error={overview.error} onRetry={() => void overview.refetch()} />
    </Page>
  );
}

function countWaiting(reasons: readonly { readonly turns: number }[]): number {
  return reasons.reduce((sum, { turns }) => sum + turns, 0);
}

function OperatorSignIn({ onSignedIn }: { readonly onSignedIn: () => void }): ReactNode {
  const words = useWords();
  const api = useApi();
  const signIn = async (token: string): Promise<void> => {
    await api.call(routes.signIn, { body: { token } });
    onSignedIn();
  };
  return (
    <SignInForm
      heading={words.operate.title}
      label={words.operate.token}
      placeholder="OPS_TOKEN"
      notice={null}
      onSecret={signIn}
      help={<p>{words.operate.tokenHelp}</p>}
    />
  );
}

function useNavigation(waiting: number): readonly NavigationItem[] {
  const { nav } = useWords().operate;
  return [
    { path: '/operate', label: nav.now, icon: <PulseIcon /> },
    { path: '/operate/waiting', label: nav.waiting, icon: <ClockIcon />, count: waiting },
    { path: '/operate/turns', label: nav.turns, icon: <SearchIcon /> },
    { path: '/operate/failures', label: nav.failures, icon: <AlertIcon /> },
    { path: '/operate/workers', label: nav.workers, icon: <WorkerIcon /> },
    { path: '/operate/deliveries', label: nav.deliveries, icon: <EnvelopeIcon /> },
    { path: '/operate/tenants', label: nav.tenants, icon: <BuildingIcon /> },
    { path: '/operate/health', label: nav.health, icon: <HeartIcon /> },
    { path: '/operate/logs', label: nav.logs, icon: <ListIcon /> },
    { path: '/operate/audit', label: nav.audit, icon: <ListIcon /> },
    { path: '/operate/queues', label: nav.internals, icon: <RetryIcon /> },
  ];
}

/** What the queue board is, before it is opened: it is no page of the console, and not where to look for a turn. */
function InternalsPage(): ReactNode {
  const { nav, internals } = useWords().operate;
  return (
    <Page title={nav.internals} about={internals.about}>
      <a href={routes.queues.path} className="inline-flex items-center gap-1.5 text-sm font-medium text-primary underline">
        {internals.open} <ExternalIcon className="size-3.5" />
      </a>
    </Page>
  );
}

interface OperatorPagesProps {
  readonly waiting: number;
  readonly onSignedOut: () => void;
}

function OperatorPages({ waiting, onSignedOut }: OperatorPagesProps): ReactNode {
  const explain = useExplain();
  const words = useWords();
  const api = useApi();
  const items = useNavigation(waiting);
  const [path] = useLocation();
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => setProblem(null), [path]);
  const signOut = async (): Promise<void> => {
    await api.call(routes.signOut);
    // Without a token the pages stay open, to this machine.
    const isStillOpen = await api.call(routes.getOverview).then(
      () => true,
      () => false,
    );
    if (isStillOpen) setProblem(words.operate.openHere);
    else onSignedOut();
  };
  return (
    <Shell
      title={words.operate.title}
      items={items}
      home="/operate"
      onSignOut={() => {
        signOut().catch((error: unknown) => setProblem(explain(error)));
      }}
    >
      {problem !== null && (
        <p role="alert" className="bg-warn-soft px-4 py-2 text-sm text-warn">
          {problem}
        </p>
      )}
      <Switch>
        <Route path="/operate" component={NowPage} />
        <Route path="/operate/waiting" component={WaitingPage} />
        <Route path="/operate/turns" component={TurnsPage} />
        <Route path="/operate/turns/:tenant/:id">{({ tenant, id }) => <TurnPage key={id} tenant={tenant} id={id} />}</Route>
        <Route path="/operate/failures" component={FailuresPage} />
        <Route path="/operate/workers" component={WorkersPage} />
        <Route path="/operate/deliveries" component={DeliveriesPage} />
        <Route path="/operate/tenants" component={TenantsPage} />
        <Route path="/operate/tenants/:tenant">{({ tenant }) => <TenantPage key={tenant} tenant={tenant} />}</Route>
        <Route path="/operate/health" component={HealthPage} />
        <Route path="/operate/logs" component={LogsPage} />
        <Route path="/operate/audit" component={AuditPage} />
        <Route path="/operate/queues" component={InternalsPage} />
        <Route>
          <NotFound home="/operate" />
        </Route>
      </Switch>
    </Shell>
  );
}
