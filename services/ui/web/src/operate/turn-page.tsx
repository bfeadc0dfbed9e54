import { routes } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { TurnLife } from '../parts/turn-life.tsx';
import { useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { CancelTurnButton, SLOW_MS, TenantLink } from './shared.tsx';

/** The life of one turn of any tenant, without a word of its texts. */
export function TurnPage({ tenant, id }: { readonly tenant: string; readonly id: string }): ReactNode {
  const { operate, owner } = useWords();
  const asked = { params: { id }, query: { tenant } };
  const first = useRead(routes.getOperatedTurnTrace, asked);
  const isLive = first.data !== undefined && first.data.endedAt === null;
  const trace = useRead(routes.getOperatedTurnTrace, asked, isLive ? { everyMs: SLOW_MS } : {});
  return (
    <Page
      title={owner.turn.title}
      about={
        <>
          <Link href="/operate/turns" className="text-primary underline">
            {owner.turn.back}
          </Link>{' '}
          ·{' '}
          <Link href={`/operate/logs?id=${id}`} className="text-primary underline">
            {operate.nav.logs}
          </Link>
        </>
      }
    >
      <Loaded query={trace}>
        {(life) => (
          <TurnLife trace={life} tenant={<TenantLink tenant={tenant} />}>
            {life.endedAt === null && <CancelTurnButton tenant={tenant} turnId={id} />}
          </TurnLife>
        )}
      </Loaded>
    </Page>
  );
}
