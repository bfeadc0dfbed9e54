import { routes, type TurnView } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Button } from '../parts/button.tsx';
import { RetryIcon } from '../parts/icons.tsx';
import { Page, Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { TurnLife } from '../parts/turn-life.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { ChangeProblem, Done, useCanChange } from './owner-parts.tsx';

const LIVE_LOOK_MS = 5000;

/** The life of one turn: from its acceptance to what was sent, with times, tokens and money. */
export function TurnPage({ id }: { readonly id: string }): ReactNode {
  const { turn: words } = useWords().owner;
  const turn = useRead(routes.getTurn, { params: { id } });
  const first = useRead(routes.getTurnTrace, { params: { id } });
  const isLive = first.data !== undefined && first.data.endedAt === null;
  const trace = useRead(routes.getTurnTrace, { params: { id } }, isLive ? { everyMs: LIVE_LOOK_MS } : {});
  return (
    <Page
      title={words.title}
      about={
        <Link href="/turns" className="text-primary underline">
          {words.back}
        </Link>
      }
    >
      <Loaded query={trace}>
        {(life) => (
          <TurnLife
            trace={life}
            actions={
              <Link href={`/chat/${life.contact_id}`} className="text-sm text-primary underline">
                {words.conversation}
              </Link>
            }
          >
            <Actions turn={life} />
            {turn.data?.input !== undefined && (
              <Section title={words.asked}>
                <p className="rounded-xl border bg-card px-4 py-3 text-sm whitespace-pre-wrap wrap-anywhere">{turn.data.input}</p>
              </Section>
            )}
          </TurnLife>
        )}
      </Loaded>
    </Page>
  );
}

function Actions({ turn }: { readonly turn: Pick<TurnView, 'id' | 'origin' | 'status' | 'endedAt'> }): ReactNode {
  const { turn: words } = useWords().owner;
  const canChange = useCanChange();
  const retry = useChange(routes.retryTurn, [routes.getTurn, routes.getTurnTrace, routes.listTurns]);
  const cancel = useChange(routes.cancelTurn, [routes.getTurn, routes.getTurnTrace, routes.listTurns]);
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
