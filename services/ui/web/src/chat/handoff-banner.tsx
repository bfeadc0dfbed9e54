import type { HandoffState } from '@concierge/contract';
import type { ReactNode } from 'react';
import { clockTime, exactTime } from '../../../src/chat/relative-time.ts';
import { Button } from '../parts/button.tsx';
import { StaffIcon } from '../parts/icons.tsx';
import type { HandoffActions } from '../sessions/use-handover.ts';

export interface HandoffBannerProps {
  readonly state: HandoffState;
  readonly actions: HandoffActions;
}

/** Shows that staff has the conversation, why and until when; nothing while the agent has it. */
export function HandoffBanner({ state, actions }: HandoffBannerProps): ReactNode {
  if (!state.isPaused && actions.problem === null) return null;
  return (
    <section aria-label="Handed over" className="border-b bg-warn-soft px-4 py-2.5 text-sm sm:px-6">
      {state.isPaused && (
        <div className="mx-auto flex max-w-3xl flex-wrap items-center gap-x-3 gap-y-2">
          <StaffIcon className="size-4 shrink-0 text-warn" />
          <p className="min-w-48 flex-1 [overflow-wrap:anywhere]">
            <strong className="font-semibold text-warn">A person has this conversation.</strong> <Why state={state} />
          </p>
          <Button disabled={actions.isBusy} onClick={actions.giveBack}>
            Give back to the agent
          </Button>
        </div>
      )}
      {actions.problem !== null && (
        <p role="alert" className="mx-auto max-w-3xl text-danger">
          {actions.problem}
        </p>
      )}
    </section>
  );
}

function Why({ state: { handoff } }: { readonly state: HandoffState }): ReactNode {
  if (handoff === null) return <>The note that says why is damaged.</>;
  const { reason, since, until } = handoff;
  const now = Date.now();
  return (
    <>
      {reason}{' '}
      <span className="text-muted-foreground">
        Since{' '}
        <time dateTime={since} title={exactTime(since)}>
          {clockTime(since, now)}
        </time>
        {until === null ? ', until it is given back.' : ', until '}
        {until !== null && (
          <time dateTime={until} title={exactTime(until)}>
            {clockTime(until, now)}
          </time>
        )}
      </span>
    </>
  );
}
