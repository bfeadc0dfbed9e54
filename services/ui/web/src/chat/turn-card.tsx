import { replyText, type ReplyPart } from '@concierge/client';
import type { FinishReason } from '@concierge/contract';
import { memo, type ReactNode } from 'react';
import { explain } from '../../../src/chat/chat-failure.ts';
import { hasEnded, type ChatTurn, type Question } from '../../../src/chat/chat-turn.ts';
import { exactTime } from '../../../src/chat/relative-time.ts';
import { AttachmentChip } from './attachment-chip.tsx';
import { Button, CopyButton } from '../parts/button.tsx';
import { AlertIcon, StaffIcon, RetryIcon, SpinnerIcon } from '../parts/icons.tsx';
import { LazyMarkdown } from './lazy-markdown.tsx';
import { ToolCard } from './tool-card.tsx';

export interface TurnActions {
  readonly onRetry: (key: string) => void;
  readonly onWithdraw: (key: string) => void;
  readonly onStop: (key: string) => void;
  readonly onReconnect: () => void;
}

export interface TurnCardProps {
  readonly turn: ChatTurn;
  /** Others come first. */
  readonly queued: boolean;
  /** The newest one; only that can be asked again. */
  readonly last: boolean;
  readonly actions: TurnActions;
}

/** One turn: what was asked, what came back, how it ended. */
export const TurnCard = memo(function TurnCard({ turn, queued, last, actions }: TurnCardProps): ReactNode {
  return (
    <article aria-label="Turn" aria-busy={!hasEnded(turn)} data-turn={turn.state.at} className="space-y-3">
      {turn.question !== null && <QuestionBubble question={turn.question} faded={queued || turn.state.at === 'sending'} />}
      {turn.question === null && !turn.isFromStaff && !hasEnded(turn) && (
        <p className="text-center text-xs text-muted-foreground">Answering a message that was sent elsewhere</p>
      )}
      {queued ? <QueuedLine turn={turn} actions={actions} /> : <Reply turn={turn} last={last} actions={actions} />}
    </article>
  );
});

function QuestionBubble({ question, faded }: { readonly question: Question; readonly faded: boolean }): ReactNode {
  return (
    <div className={`flex flex-col items-end gap-1.5 transition-opacity ${faded ? 'opacity-60' : ''}`}>
      <h3 className="sr-only">You</h3>
      {question.attachments.length > 0 && (
        <ul aria-label="Attachments" className="flex flex-wrap justify-end gap-1.5">
          {question.attachments.map(({ id, name, type, size }) => (
            <AttachmentChip key={id} name={name} size={size} isImage={type.startsWith('image/')} />
          ))}
        </ul>
      )}
      <div
        title={exactTime(question.at)}
        dir="auto"
        className="max-w-[85%] rounded-2xl rounded-br-md bg-primary-soft px-4 py-2 whitespace-pre-wrap [overflow-wrap:anywhere]"
      >
        {question.text}
      </div>
    </div>
  );
}

function QueuedLine({ turn, actions }: { readonly turn: ChatTurn; readonly actions: TurnActions }): ReactNode {
  return (
    <p className="flex items-center justify-end gap-2 text-xs text-muted-foreground">
      {turn.stopping ? 'Taking it back…' : turn.state.at === 'sending' ? 'Sending…' : 'Waits its turn'}
      {turn.state.at === 'waiting' && !turn.stopping && (
        <button
          type="button"
          className="font-medium underline underline-offset-2 hover:text-foreground"
          onClick={() => actions.onStop(turn.key)}
        >
          Take back
        </button>
      )}
    </p>
  );
}

function Reply({ turn, last, actions }: { readonly turn: ChatTurn; readonly last: boolean; readonly actions: TurnActions }): ReactNode {
  const streaming = !hasEnded(turn);
  const text = replyText(turn);
  return (
    <div className={turn.isFromStaff ? 'min-w-0 border-l-2 border-warn pl-3' : 'min-w-0'}>
      <Speaker isPerson={turn.isFromStaff} />
      {turn.parts.map((part, index) => (
        <Part
          key={part.kind === 'tool' ? part.id : `text-${String(index)}`}
          part={part}
          streaming={streaming && index === turn.parts.length - 1}
        />
      ))}
      <Progress turn={turn} />
      <Outcome turn={turn} last={last} actions={actions} />
      {!streaming && (
        <div className="mt-1 flex min-h-7 items-center gap-2 text-xs text-muted-foreground">
          {text !== '' && <CopyButton text={text} label="Copy reply" className="-ml-1.5" />}
          {!turn.isFromStaff && <UsageLine turn={turn} />}
        </div>
      )}
    </div>
  );
}

function Speaker({ isPerson }: { readonly isPerson: boolean }): ReactNode {
  if (!isPerson) return <h3 className="sr-only">Agent</h3>;
  return (
    <h3 className="mb-1 flex items-center gap-1.5 text-xs font-medium text-warn">
      <StaffIcon className="size-3.5" /> A person, in the agent’s place
    </h3>
  );
}

function Part({ part, streaming }: { readonly part: ReplyPart; readonly streaming: boolean }): ReactNode {
  if (part.kind === 'tool') return <ToolCard part={part} />;
  return <LazyMarkdown text={part.text} streaming={streaming} />;
}

/** What is going on while nothing can be read. */
function describeProgress({ state, parts, stopping, isFromStaff }: ChatTurn): string | null {
  if (stopping) return 'Stopping…';
  if (state.at === 'sending') return 'Sending…';
  if (state.at === 'waiting') return isFromStaff ? 'Sending…' : 'Waiting for the agent…';
  if (state.at !== 'running') return null;
  const last = parts.at(-1);
  return last?.kind === 'text' || (last?.kind === 'tool' && last.status === 'running') ? null : 'Thinking…';
}

function Progress({ turn }: { readonly turn: ChatTurn }): ReactNode {
  const text =
    turn.link === 'reconnecting' && !hasEnded(turn)
      ? 'Connection lost. Reconnecting…'
      : turn.link === 'lost'
        ? null
        : describeProgress(turn);
  if (text === null) return null;
  return (
    <p className="flex items-center gap-2 py-1 text-sm text-muted-foreground">
      <SpinnerIcon className="size-3.5" />
      {text}
    </p>
  );
}

const endings: Readonly<Record<FinishReason, string | null>> = {
  stop: null,
  length: 'The reply was cut at the model’s length limit. Ask the agent to go on.',
  max_turns: 'The agent used up its rounds of tools for one turn. Ask it to go on.',
  content_filter: 'The model provider’s filter ended the reply. Try other words.',
  cancelled: 'Stopped.',
};

function Outcome({ turn, last, actions }: { readonly turn: ChatTurn; readonly last: boolean; readonly actions: TurnActions }): ReactNode {
  const { state, link, key } = turn;
  if (link === 'lost') {
    return (
      <Notice tone="warn" text="The connection was lost for a long time. The agent goes on without it.">
        <Button onClick={actions.onReconnect}>Reconnect</Button>
      </Notice>
    );
  }
  if (state.at === 'unsent') {
    return (
      <Notice tone="danger" text={`Not sent. ${explain(state.failure)}`}>
        <Button onClick={() => actions.onRetry(key)}>
          <RetryIcon className="size-3.5" /> Send again
        </Button>
        <Button tone="quiet" onClick={() => actions.onWithdraw(key)}>
          Take back
        </Button>
      </Notice>
    );
  }
  if (state.at === 'failed') {
    return (
      <Notice tone="danger" text={explain(state.failure)}>
        {last && turn.question !== null && (
          <Button onClick={() => actions.onRetry(key)}>
            <RetryIcon className="size-3.5" /> Try again
          </Button>
        )}
      </Notice>
    );
  }
  const ending = state.at === 'done' && state.finishReason !== null ? endings[state.finishReason] : null;
  return ending === null ? null : <p className="mt-1 text-sm text-muted-foreground italic">{ending}</p>;
}

function Notice({
  tone,
  text,
  children,
}: {
  readonly tone: 'danger' | 'warn';
  readonly text: string;
  readonly children?: ReactNode;
}): ReactNode {
  const colors = tone === 'danger' ? 'bg-danger-soft text-danger' : 'bg-warn-soft text-warn';
  return (
    <div role="alert" className={`mt-2 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg px-3 py-2 text-sm ${colors}`}>
      <AlertIcon className="size-4 shrink-0" />
      <p className="min-w-48 flex-1">{text}</p>
      <div className="flex gap-1 text-foreground">{children}</div>
    </div>
  );
}

function UsageLine({ turn: { state } }: { readonly turn: ChatTurn }): ReactNode {
  if (state.at !== 'done' || state.usage === null) return null;
  const { inputTokens, outputTokens } = state.usage;
  return (
    <span className="tabular-nums" title="Tokens the model read and wrote for this turn">
      {inputTokens.toLocaleString()} tokens in · {outputTokens.toLocaleString()} out
    </span>
  );
}
