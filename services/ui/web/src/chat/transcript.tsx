import { replyText } from '@concierge/client';
import { useCallback, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { hasEnded, isUnderWay, type ChatTurn } from '../../../src/chat/chat-turn.ts';
import { Button } from '../parts/button.tsx';
import { describeTool } from '../parts/tool-name.tsx';
import { useWords } from '../words/words.tsx';
import { DownIcon } from '../parts/icons.tsx';
import type { ForkActions } from './use-forks.ts';
import { TurnCard, type TurnActions } from './turn-card.tsx';

/** This near the end counts as being there. */
const NEAR_PX = 60;
const ANNOUNCED_CHARACTERS = 2000;

export interface TranscriptProps {
  readonly turns: readonly ChatTurn[];
  readonly actions: TurnActions;
  /** Null: the conversation cannot be forked. */
  readonly forks: ForkActions | null;
  /** The key may do more than read. */
  readonly mayWrite: boolean;
  /** Shows turns before these; null: there are none. */
  readonly onEarlier: (() => void) | null;
}

/** The conversation. Stays at its end while words come, unless the reader has scrolled up. */
export function Transcript({ turns, actions, forks, mayWrite, onEarlier }: TranscriptProps): ReactNode {
  const words = useWords().chat;
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  /** Where it stood last. */
  const lastTop = useRef(0);
  const [away, setAway] = useState(false);
  // What is asked elsewhere is known by the service's id alone.
  const lastAsked = turns.findLast(({ key, turnId, question }) => question !== null && key !== turnId)?.key;

  const toEnd = useCallback(() => {
    atEnd.current = true;
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
    lastTop.current = scroller.current?.scrollTop ?? 0;
  }, []);

  // What the reader looks at stays where it is when earlier turns come before it, whatever comes behind it meanwhile.
  const firstKey = turns[0]?.key;
  const first = useRef<{ readonly turn: HTMLElement; readonly top: number } | null>(null);
  useLayoutEffect(() => {
    const area = scroller.current;
    const before = first.current;
    if (area !== null && before?.turn.isConnected === true && !atEnd.current) area.scrollTop += before.turn.offsetTop - before.top;
    const turn = content.current?.querySelector('article') ?? null;
    first.current = turn === null ? null : { turn, top: turn.offsetTop };
  }, [firstKey]);

  // A message of one's own is always shown.
  useLayoutEffect(toEnd, [lastAsked, toEnd]);

  useLayoutEffect(() => {
    if (content.current === null || scroller.current === null) return undefined;
    const observer = new ResizeObserver(() => {
      if (atEnd.current) toEnd();
    });
    observer.observe(content.current);
    observer.observe(scroller.current);
    return () => {
      observer.disconnect();
    };
  }, [toEnd]);

  const onScroll = (): void => {
    const area = scroller.current;
    if (area === null) return;
    const isNear = area.scrollHeight - area.scrollTop - area.clientHeight < NEAR_PX;
    // Readers leave the end upwards: what has grown below it since, before this was heard of, is followed.
    if (isNear || area.scrollTop < lastTop.current) atEnd.current = isNear;
    lastTop.current = area.scrollTop;
    setAway(!atEnd.current);
  };

  const firstOpen = turns.findIndex((turn) => !hasEnded(turn));
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={scroller} onScroll={onScroll} className="relative h-full overflow-y-auto overscroll-contain" tabIndex={-1}>
        <div ref={content} className="mx-auto max-w-3xl space-y-6 px-4 pt-6 pb-8 sm:px-6">
          {onEarlier !== null && (
            <div className="text-center">
              <Button tone="quiet" onClick={onEarlier}>
                {words.earlier}
              </Button>
            </div>
          )}
          {turns.map((turn, index) => (
            <TurnCard
              key={turn.key}
              turn={turn}
              queued={firstOpen !== -1 && index > firstOpen && (isUnderWay(turn) || turn.state.at === 'sending')}
              last={index === turns.length - 1}
              actions={actions}
              forks={forks}
              mayWrite={mayWrite}
            />
          ))}
        </div>
      </div>
      {away && (
        <button
          type="button"
          className="absolute bottom-3 left-1/2 inline-flex -translate-x-1/2 items-center gap-1.5 rounded-full border bg-card px-3 py-1.5 text-xs font-medium shadow-md hover:bg-muted"
          onClick={toEnd}
        >
          <DownIcon className="size-3.5" /> {words.latest}
        </button>
      )}
      <Announcer turns={turns} />
    </div>
  );
}

/** Announces to a screen reader what matters, once: not every word as it comes, and nothing that was there already. */
function Announcer({ turns }: { readonly turns: readonly ChatTurn[] }): ReactNode {
  const { chat, trace } = useWords();
  const open = turns.find(isUnderWay);
  const last = turns.at(-1);
  const [followed, setFollowed] = useState<string | null>(null);
  if (open !== undefined && open.key !== followed) setFollowed(open.key);
  const tool = open?.parts.findLast((part) => part.kind === 'tool' && part.status === 'running');
  let text = '';
  if (open !== undefined) text = tool?.kind === 'tool' ? chat.turn.usesTool(describeTool(trace, tool.name)) : chat.turn.answering;
  else if (last?.key === followed && last.state.at === 'done') text = chat.turn.says(replyText(last).slice(0, ANNOUNCED_CHARACTERS));
  return (
    <div aria-live="polite" role="status" className="sr-only">
      {text}
    </div>
  );
}
