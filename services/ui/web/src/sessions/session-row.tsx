import type { SessionListItem } from '@concierge/contract';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { isUnderWay } from '../../../src/chat/chat-turn.ts';
import type { Conversation } from '../../../src/chat/conversation.ts';
import { findFirstWords } from '../../../src/chat/conversation-state.ts';
import { formatRoute } from '../../../src/chat/route.ts';
import { useConversationState } from '../chat/use-conversation-state.ts';
import { IconButton } from '../parts/button.tsx';
import { AgentBadge, channelLabel } from '../parts/choice.tsx';
import { MoreIcon, PinIcon, StaffIcon, TrashIcon } from '../parts/icons.tsx';
import type { Words } from '../words/en.ts';
import { useFormats, useWords } from '../words/words.tsx';

export interface SessionRowProps {
  readonly item: SessionListItem;
  readonly now: number;
  /** The conversation waits for staff. */
  readonly waits: boolean;
  readonly current: boolean;
  readonly onChosen: () => void;
  /** It is to be renamed, pinned or saved. */
  readonly onLabel: () => void;
  /** Null: the key may only read. */
  readonly onDelete: (() => void) | null;
}

/** What began it, where that was not a person. */
function describeOrigin(origin: SessionListItem['origin'], words: Words['chat']['list']['origins']): string | null {
  return origin === 'user' || origin === 'channel' ? null : words[origin];
}

/** One conversation of the list. */
export function SessionRow({ item, now, waits, current, onChosen, onLabel, onDelete }: SessionRowProps): ReactNode {
  const words = useWords().chat.list;
  const formats = useFormats();
  const title = item.title === '' ? words.untitled : item.title;
  const origin = describeOrigin(item.origin, words.origins);
  const shown = 'opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 pointer-coarse:opacity-60';
  return (
    <li className={`group relative rounded-lg ${current ? 'bg-primary-soft' : 'hover:bg-muted'}`}>
      <Link
        href={formatRoute({ page: 'conversation', contactId: item.id })}
        aria-current={current ? 'page' : undefined}
        className="block rounded-lg px-2.5 py-2"
        onClick={onChosen}
      >
        <span className="flex items-center gap-1.5 pr-14 text-sm">
          {item.pinned && <PinIcon className="size-3.5 shrink-0 text-muted-foreground" />}
          <span className="min-w-0 truncate">{title}</span>
        </span>
        <span className="mt-0.5 flex items-center gap-1.5 text-xs text-muted-foreground">
          <AgentBadge agent={item.agent} />
          {waits && (
            <span role="img" aria-label={words.waits} title={words.waits} className="text-warn">
              <StaffIcon className="size-3.5" />
            </span>
          )}
          {origin !== null && <span className="truncate">{origin}</span>}
          {item.channel !== 'web' && <span className="truncate">{channelLabel(item.channel)}</span>}
          <span className="tabular-nums">{words.messages(item.messageCount)}</span>
          <time dateTime={item.updatedAt} title={formats.exactTime(item.updatedAt)} className="ml-auto tabular-nums">
            {formats.relative(item.updatedAt, now)}
          </time>
        </span>
      </Link>
      <IconButton label={words.actions(title)} className={`absolute top-1 right-8 size-7! ${shown}`} onClick={onLabel}>
        <MoreIcon className="size-3.5" />
      </IconButton>
      {onDelete !== null && (
        <IconButton label={`${words.delete} “${title}”`} className={`absolute top-1 right-1 size-7! ${shown}`} onClick={onDelete}>
          <TrashIcon className="size-3.5" />
        </IconButton>
      )}
    </li>
  );
}

interface BegunRowProps {
  /** The one that is shown beside the list. */
  readonly conversation: Conversation | null;
  readonly listed: ReadonlySet<string>;
  /** What stands there when all is listed. */
  readonly otherwise: ReactNode;
}

/** A conversation that no list has before its first turn has ended. */
export function BegunRow({ conversation, listed, otherwise }: BegunRowProps): ReactNode {
  const words = useWords().chat.list;
  const state = useConversationState(conversation);
  const id = state?.contactId ?? null;
  if (state === null || id === null || listed.has(id) || !state.turns.some(isUnderWay)) return otherwise;
  return (
    <Link
      href={formatRoute({ page: 'conversation', contactId: id })}
      aria-current="page"
      className="mb-0.5 block rounded-lg bg-primary-soft px-2.5 py-2"
    >
      <span className="block truncate text-sm">{state.title ?? findFirstWords(state) ?? words.untitled}</span>
      <span className="mt-0.5 flex text-xs">
        <AgentBadge agent={state.agent} />
      </span>
    </Link>
  );
}
