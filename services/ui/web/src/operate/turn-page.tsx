import { routes } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { ConfirmButton } from '../parts/confirm-dialog.tsx';
import { Page } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';
import { TurnLife } from '../parts/turn-life.tsx';
import { useChange, useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';
import { SLOW_MS, TenantLink } from './shared.tsx';

/** The life of one turn of any tenant, without a word of its texts. */
export function TurnPage({ tenant, id }: { readonly tenant: string; readonly id: string }): ReactNode {
  const { operate, owner } = useWords();
  const asked = { params: { id }, query: { tenant } };
  const first = useRead(routes.getOperatedTurnTrace, asked);
  const isLive = first.data !== undefined && first.data.endedAt === null;
  const trace = useRead(routes.getOperatedTurnTrace, asked, isLive ? { everyMs: SLOW_MS } : {});
  const cancel = useChange(routes.cancelOperatedTurn, [routes.getOperatedTurnTrace, routes.listOperatedTurns, routes.getOverview]);
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
            {life.endedAt === null && (
              <ConfirmButton
                label={operate.turns.cancel}
                title={operate.turns.cancelTitle}
                action={operate.turns.cancelAction}
                onConfirm={async () => cancel.mutateAsync(asked)}
              >
                {operate.turns.cancelText(id, tenant)}
              </ConfirmButton>
            )}
          </TurnLife>
        )}
      </Loaded>
    </Page>
  );
}
