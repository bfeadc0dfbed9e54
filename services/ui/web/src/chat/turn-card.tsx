import { replyText, type ReplyPart } from '@concierge/client';
import type { FinishReason } from '@concierge/contract';
import { createContext, memo, useContext, useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { findWholeQuestion, hasEnded, type ChatTurn, type Question } from '../../../src/chat/chat-turn.ts';
import { TurnWait } from '../sessions/turn-waits.tsx';
import type { Words } from '../words/en.ts';
import { useExplain, useFormats, useWords } from '../words/words.tsx';
import { Button, CopyButton, IconButton } from '../parts/button.tsx';
import { AlertIcon, ForkIcon, PencilIcon, PulseIcon, StaffIcon, RetryIcon, SpinnerIcon } from '../parts/icons.tsx';
import { LazyMarkdown } from './lazy-markdown.tsx';
import { MessageEditor } from './message-editor.tsx';
import { SentFiles } from './sent-files.tsx';
import { ToolCard } from './tool-card.tsx';
import type { ForkActions } from './use-forks.ts';

/** The key may open the pages of turns. */
export const TurnPages = createContext(false);

export interface TurnActions {
  readonly onRetry: (key: string) => void;
  readonly onTakeBack: (key: string) => void;
  readonly onSendNow: (key: string) => void;
  readonly onEditQueued: (key: string, text: string) => void;
  readonly onReconnect: () => void;
}

export interface TurnCardProps {
  readonly turn: ChatTurn;
  /** Others come first. */
  readonly queued: boolean;
  /** The newest one; only that can be asked again. */
  readonly last: boolean;
  readonly actions: TurnActions;
  /** Null: the conversation cannot be forked. */
  readonly forks: ForkActions | null;
  /** The key may do more than read. */
  readonly mayWrite: boolean;
}

/** One turn: what was asked, what came back, how it ended. */
export const TurnCard = memo(function TurnCard({ turn, queued, last, actions, forks, mayWrite }: TurnCardProps): ReactNode {
  const words = useWords().chat.turn;
  const { question } = turn;
  const canFork = forks !== null && hasEnded(turn) && turn.turnId !== null && !turn.isFromStaff;
  return (
    <article aria-label={words.turn} aria-busy={!hasEnded(turn)} data-turn={turn.state.at} className="group/turn space-y-3">
      {question !== null && (
        <Asked turn={turn} question={question} queued={queued} actions={actions} forks={canFork ? forks : null} mayWrite={mayWrite} />
      )}
      {question === null && !turn.isFromStaff && !hasEnded(turn) && (
        <p className="text-center text-xs text-muted-foreground">{words.elsewhere}</p>
      )}
      {!queued && <Reply turn={turn} last={last && mayWrite} actions={actions} forks={canFork ? forks : null} />}
    </article>
  );
});

interface AskedProps extends Omit<TurnCardProps, 'last'> {
  readonly question: Question;
}

/** What was asked; while it waits, with what can be done about it. */
function Asked({ turn, question, queued, actions, forks, mayWrite }: AskedProps): ReactNode {
  const words = useWords().chat.turn;
  // What it was when the editing began: its turn may begin, and end, meanwhile.
  const [edited, setEdited] = useState<'waiting' | 'asked' | null>(null);
  if (edited !== null) {
    const isWaiting = edited === 'waiting';
    const save = (text: string): void => {
      if (isWaiting) {
        setEdited(null);
        actions.onEditQueued(turn.key, text);
      } else {
        // Another conversation takes the place of this one; where none can be begun, the words stay.
        forks?.onAskDifferently(turn, text);
      }
    };
    const maySave = isWaiting ? queued : forks !== null;
    const action = isWaiting ? words.save : words.ask;
    return <MessageEditor text={question.text} action={action} onSave={maySave ? save : null} onCancel={() => setEdited(null)} />;
  }
  return (
    <>
      <QuestionBubble question={question} faded={queued || turn.state.at === 'sending'} />
      {queued && <QueuedLine turn={turn} actions={actions} mayWrite={mayWrite} onEdit={() => setEdited('waiting')} />}
      {forks !== null && !queued && question.isExcerpt !== true && (
        <div className="-mt-2 flex justify-end">
          <IconButton label={words.editAsked} className={`size-7! ${quiet}`} onClick={() => setEdited('asked')}>
            <PencilIcon className="size-3.5" />
          </IconButton>
        </div>
      )}
    </>
  );
}

/** Not in the way of the words; for a finger always, for a pointer or a keyboard when it comes near. */
const quiet = 'opacity-0 group-focus-within/turn:opacity-100 group-hover/turn:opacity-100 pointer-coarse:opacity-100';

/** What became of the turn, from its receipt on: behind every one that the service has. */
function LifeLink({ turn: { turnId } }: { readonly turn: ChatTurn }): ReactNode {
  const words = useWords().tools.simulate;
  const hasPages = useContext(TurnPages);
  if (turnId === null || !hasPages) return null;
  return (
    <Link
      href={`/turns/${turnId}`}
      aria-label={words.life}
      title={words.life}
      className={`inline-flex size-7 shrink-0 items-center justify-center rounded-lg text-muted-foreground hover:bg-muted hover:text-foreground ${quiet}`}
    >
      <PulseIcon className="size-3.5" />
    </Link>
  );
}

function QuestionBubble({ question, faded }: { readonly question: Question; readonly faded: boolean }): ReactNode {
  const { chat } = useWords();
  const formats = useFormats();
  return (
    <div className={`flex flex-col items-end gap-1.5 transition-opacity ${faded ? 'opacity-75' : ''}`}>
      <h2 className="sr-only">{chat.turn.you}</h2>
      {question.attachments.length > 0 && <SentFiles files={question.attachments} />}
      <div
        title={formats.exactTime(question.at)}
        dir="auto"
        className="max-w-[85%] rounded-2xl rounded-br-md bg-primary-soft px-4 py-2 whitespace-pre-wrap [overflow-wrap:anywhere]"
      >
        {question.text}
      </div>
    </div>
  );
}

interface QueuedLineProps {
  readonly turn: ChatTurn;
  readonly actions: TurnActions;
  readonly mayWrite: boolean;
  readonly onEdit: () => void;
}

function QueuedLine({ turn, actions, mayWrite, onEdit }: QueuedLineProps): ReactNode {
  const words = useWords().chat.turn;
  const isWhole = findWholeQuestion(turn) !== null;
  return (
    <p className="flex flex-wrap items-center justify-end gap-x-3 gap-y-1 text-xs text-muted-foreground">
      {turn.stopping ? words.stopping : turn.state.at === 'sending' ? words.sending : <QueuedReason turn={turn} />}
      <LifeLink turn={turn} />
      {turn.state.at === 'waiting' && !turn.stopping && mayWrite && (
        <>
          <TextButton label={words.sendNow} onClick={() => actions.onSendNow(turn.key)} />
          {isWhole && <TextButton label={words.edit} hint={words.editQueued} onClick={onEdit} />}
          <TextButton label={words.takeBack} onClick={() => actions.onTakeBack(turn.key)} />
        </>
      )}
    </p>
  );
}

function QueuedReason({ turn }: { readonly turn: ChatTurn }): ReactNode {
  const words = useWords().chat.turn;
  return (
    <>
      <span>{words.waits}</span>
      <TurnWait turn={turn}>{null}</TurnWait>
    </>
  );
}

function TextButton({ label, hint, onClick }: { readonly label: string; readonly hint?: string; readonly onClick: () => void }): ReactNode {
  return (
    <button type="button" title={hint} className="font-medium underline underline-offset-2 hover:text-foreground" onClick={onClick}>
      {label}
    </button>
  );
}

function Reply({ turn, last, actions, forks }: Omit<TurnCardProps, 'queued' | 'mayWrite'>): ReactNode {
  const words = useWords().chat.turn;
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
          {text !== '' && <CopyButton text={text} label={words.copyReply} className="-ml-1.5" />}
          {forks !== null && (
            <>
              {findWholeQuestion(turn) !== null && (
                <IconButton label={words.again} className={`size-7! ${quiet}`} onClick={() => forks.onAnswerAgain(turn)}>
                  <RetryIcon className="size-3.5" />
                </IconButton>
              )}
              <IconButton label={words.goOn} className={`size-7! ${quiet}`} onClick={() => forks.onGoOn(turn)}>
                <ForkIcon className="size-3.5" />
              </IconButton>
            </>
          )}
          {!turn.isFromStaff && <LifeLink turn={turn} />}
          {!turn.isFromStaff && <UsageLine turn={turn} />}
        </div>
      )}
    </div>
  );
}

function Speaker({ isPerson }: { readonly isPerson: boolean }): ReactNode {
  const words = useWords().chat.turn;
  if (!isPerson) return <h2 className="sr-only">{words.agent}</h2>;
  return (
    <h2 className="mb-1 flex items-center gap-1.5 text-xs font-medium text-warn">
      <StaffIcon className="size-3.5" /> {words.person}
    </h2>
  );
}

function Part({ part, streaming }: { readonly part: ReplyPart; readonly streaming: boolean }): ReactNode {
  if (part.kind === 'tool') return <ToolCard part={part} />;
  return <LazyMarkdown text={part.text} streaming={streaming} />;
}

type TurnWords = Words['chat']['turn'];

/** What is going on while nothing can be read. */
function describeProgress({ state, parts, stopping, isFromStaff }: ChatTurn, words: TurnWords): string | null {
  if (stopping) return words.stopping;
  if (state.at === 'sending') return words.sending;
  if (state.at === 'waiting') return isFromStaff ? words.sending : words.waiting;
  if (state.at !== 'running') return null;
  const last = parts.at(-1);
  return last?.kind === 'text' || (last?.kind === 'tool' && last.status === 'running') ? null : words.thinking;
}

/** What is going on, as long as nothing of it can be read. */
export function Progress({ turn }: { readonly turn: ChatTurn }): ReactNode {
  const words = useWords().chat.turn;
  const isReconnecting = turn.link === 'reconnecting' && !hasEnded(turn);
  const known = turn.link === 'lost' ? null : describeProgress(turn, words);
  const text = isReconnecting ? words.reconnecting : known;
  if (text === null) return null;
  return (
    <p className="flex items-center gap-2 py-1 text-sm text-muted-foreground">
      <SpinnerIcon className="size-3.5" />
      {isReconnecting || turn.stopping ? text : <TurnWait turn={turn}>{text}</TurnWait>}
    </p>
  );
}

function describeEnd(reason: FinishReason, words: TurnWords): string | null {
  const endings = { stop: null, length: words.length, max_turns: words.maxTurns, content_filter: words.filtered, cancelled: words.stopped };
  return endings[reason];
}

function Outcome({ turn, last, actions }: { readonly turn: ChatTurn; readonly last: boolean; readonly actions: TurnActions }): ReactNode {
  const explain = useExplain();
  const words = useWords().chat.turn;
  const { state, link, key } = turn;
  if (link === 'lost') {
    return (
      <Notice tone="warn" text={words.lost}>
        <Button onClick={actions.onReconnect}>{words.reconnect}</Button>
      </Notice>
    );
  }
  if (state.at === 'unsent') {
    return (
      <Notice tone="danger" text={words.notSent(explain(state.failure))}>
        <Button onClick={() => actions.onRetry(key)}>
          <RetryIcon className="size-3.5" /> {words.sendAgain}
        </Button>
        <Button tone="quiet" onClick={() => actions.onTakeBack(key)}>
          {words.takeBack}
        </Button>
      </Notice>
    );
  }
  if (state.at === 'failed') {
    return (
      <Notice tone="danger" text={explain(state.failure)}>
        {last && findWholeQuestion(turn) !== null && (
          <Button onClick={() => actions.onRetry(key)}>
            <RetryIcon className="size-3.5" /> {words.retry}
          </Button>
        )}
      </Notice>
    );
  }
  if (state.at !== 'done' || state.finishReason === null) return null;
  const ending = state.isUnbegun === true ? words.takenBack : describeEnd(state.finishReason, words);
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
  const words = useWords().chat.turn;
  const formats = useFormats();
  if (state.at !== 'done' || state.usage === null) return null;
  const { inputTokens, outputTokens } = state.usage;
  // What was stopped before the model answered has used nothing.
  if (inputTokens + outputTokens === 0) return null;
  return (
    <span className="tabular-nums" title={words.tokensHelp}>
      {state.costUsd !== undefined && state.costUsd > 0 && `${formats.usd(state.costUsd)} · `}
      {words.tokens(formats.number(inputTokens), formats.number(outputTokens))}
    </span>
  );
}
