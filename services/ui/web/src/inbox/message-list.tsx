import type { ToolPart } from '@concierge/client';
import type { SessionView, StaffNote } from '@concierge/contract';
import { useEffect, type ReactNode } from 'react';
import { hasEnded, type ChatTurn } from '../../../src/chat/chat-turn.ts';
import { LazyMarkdown, preloadMarkdown } from '../chat/lazy-markdown.tsx';
import { Progress } from '../chat/turn-card.tsx';
import { Button, IconButton } from '../parts/button.tsx';
import { SpinnerIcon, TrashIcon } from '../parts/icons.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { ToolName } from '../parts/tool-name.tsx';
import { useWords } from '../words/words.tsx';
import type { SentReply } from './reply-field.tsx';

type Message = SessionView['messages'][number];

export interface MessageListProps {
  readonly messages: readonly Message[];
  /** Turns under way, and those that have ended and are not stored yet. */
  readonly live: readonly ChatTurn[];
  /** Answers that were accepted; shown until the conversation has them. */
  readonly sent: readonly SentReply[];
  /** For staff alone; shown where they were written. */
  readonly notes: readonly StaffNote[];
  /** Undefined for a key that only reads. */
  readonly onRemoveNote: ((id: string) => Promise<unknown>) | undefined;
  readonly hasEarlier: boolean;
  readonly onEarlier: () => void;
}

/** What was said: the contact on the left, agent and staff on the right. It stays at its end while more comes. */
export function MessageList({ messages, live, sent, notes, onRemoveNote, hasEarlier, onEarlier }: MessageListProps): ReactNode {
  const words = useWords().inbox;
  useEffect(preloadMarkdown, []);
  const stored = new Set(messages.map(({ turnId }) => turnId));
  const lastStored = live.findLastIndex(({ turnId }) => turnId !== null && stored.has(turnId));
  return (
    // From its end: the browser keeps it there.
    <div
      role="log"
      aria-label={words.messages}
      tabIndex={0}
      className="flex min-h-0 flex-1 flex-col-reverse overflow-y-auto -outline-offset-2"
    >
      <ol className="space-y-3 px-4 py-4">
        {hasEarlier && (
          <li className="text-center">
            <Button tone="quiet" onClick={onEarlier}>
              {words.earlier}
            </Button>
          </li>
        )}
        {mix(messages, hasEarlier ? notes.filter(({ at }) => at >= (messages[0]?.at ?? '')) : notes).map((item) =>
          'role' in item ? <MessageItem key={item.id} message={item} /> : <NoteItem key={item.id} note={item} onRemove={onRemoveNote} />,
        )}
        {live.slice(lastStored + 1).map((turn) => (
          <LiveTurn key={turn.key} turn={turn} />
        ))}
        {sent
          .filter(({ turnId }) => !stored.has(turnId))
          .map(({ turnId, text }) => (
            <Bubble key={turnId} side="us" speaker="person" note={words.sending}>
              <p className="whitespace-pre-wrap">{text}</p>
            </Bubble>
          ))}
      </ol>
    </div>
  );
}

/** In order of time; the order of messages stays. */
function mix(messages: readonly Message[], notes: readonly StaffNote[]): readonly (Message | StaffNote)[] {
  const mixed: (Message | StaffNote)[] = [];
  let next = 0;
  for (const message of messages) {
    for (let note = notes[next]; note !== undefined && note.at < message.at; note = notes[next]) {
      mixed.push(note);
      next += 1;
    }
    mixed.push(message);
  }
  return [...mixed, ...notes.slice(next)];
}

interface NoteItemProps {
  readonly note: StaffNote;
  readonly onRemove: MessageListProps['onRemoveNote'];
}

function NoteItem({ note: { id, text, author, at }, onRemove }: NoteItemProps): ReactNode {
  const words = useWords().inbox;
  return (
    <li className="rounded-xl border-2 border-dashed bg-muted px-3.5 py-2 text-sm">
      <div className="flex items-center gap-2 text-xs text-muted-foreground">
        <p className="min-w-0 flex-1 truncate">
          {words.noteBy(author)} · <RelativeTime at={at} />
        </p>
        {onRemove !== undefined && (
          <IconButton label={words.removeNote} className="size-7!" onClick={() => void onRemove(id).catch(() => undefined)}>
            <TrashIcon className="size-3.5" />
          </IconButton>
        )}
      </div>
      <p dir="auto" className="whitespace-pre-wrap wrap-anywhere">
        {text}
      </p>
    </li>
  );
}

function MessageItem({ message }: { readonly message: Message }): ReactNode {
  const words = useWords().inbox;
  switch (message.role) {
    case 'tool':
      return <ToolStep name={message.name} status={message.isError ? 'error' : 'ok'} />;
    case 'user':
      return (
        <Bubble side="contact" speaker="contact" at={message.at}>
          <p className="whitespace-pre-wrap">{message.text}</p>
          {message.attachments !== undefined && message.attachments.length > 0 && (
            <p className="text-xs text-muted-foreground">
              {words.files}: {message.attachments.map(({ name }) => name).join(', ')}
            </p>
          )}
        </Bubble>
      );
    case 'assistant':
      if (message.text === '') return null;
      return (
        <Bubble
          side="us"
          speaker={message.by === undefined ? 'agent' : 'person'}
          at={message.at}
          note={message.partial === true ? words.cut : undefined}
        >
          <LazyMarkdown text={message.text} streaming={false} />
        </Bubble>
      );
  }
}

/** What the agent does right now: its words as they come. */
function LiveTurn({ turn }: { readonly turn: ChatTurn }): ReactNode {
  const { question, parts } = turn;
  const isUnderWay = !hasEnded(turn);
  return (
    <>
      {question !== null && (
        <Bubble side="contact" speaker="contact" at={question.at}>
          <p className="whitespace-pre-wrap">{question.text}</p>
        </Bubble>
      )}
      {parts.map((part, index) =>
        part.kind === 'tool' ? (
          <ToolStep key={part.id} name={part.name} status={part.status} />
        ) : (
          <Bubble key={`text-${String(index)}`} side="us" speaker="agent" isBusy={isUnderWay && index === parts.length - 1}>
            <LazyMarkdown text={part.text} streaming={isUnderWay && index === parts.length - 1} />
          </Bubble>
        ),
      )}
      <li className="flex justify-end empty:hidden">
        <Progress turn={turn} />
      </li>
    </>
  );
}

function ToolStep({ name, status }: Pick<ToolPart, 'name' | 'status'>): ReactNode {
  const words = useWords().inbox;
  return (
    <li className="text-right text-xs text-muted-foreground">
      <ToolName name={name} /> {status === 'running' && <SpinnerIcon className="inline size-3" />}
      {status === 'error' && <span className="text-danger">{words.toolFailed}</span>}
    </li>
  );
}

interface BubbleProps {
  readonly side: 'contact' | 'us';
  readonly speaker: 'contact' | 'agent' | 'person';
  readonly at?: string;
  readonly note?: string | undefined;
  /** More of it comes: a screen reader waits for all of it. */
  readonly isBusy?: boolean;
  readonly children: ReactNode;
}

const looks = { contact: 'bg-muted', agent: 'bg-primary-soft', person: 'border border-warn bg-warn-soft' } as const;

function Bubble({ side, speaker, at, note, isBusy = false, children }: BubbleProps): ReactNode {
  const words = useWords().inbox;
  return (
    <li aria-busy={isBusy} className={`flex flex-col ${side === 'us' ? 'items-end' : 'items-start'}`}>
      <div dir="auto" className={`max-w-[85%] min-w-0 rounded-2xl px-3.5 py-2 text-sm wrap-anywhere ${looks[speaker]}`}>
        {children}
      </div>
      <p className="px-1 pt-0.5 text-xs text-muted-foreground">
        {words.speaker[speaker]}
        {at !== undefined && (
          <>
            {' · '}
            <RelativeTime at={at} />
          </>
        )}
        {note !== undefined && ` · ${note}`}
      </p>
    </li>
  );
}
