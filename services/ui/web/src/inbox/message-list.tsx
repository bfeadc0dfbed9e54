import type { SessionView } from '@concierge/contract';
import { useEffect, type ReactNode } from 'react';
import { LazyMarkdown, preloadMarkdown } from '../chat/lazy-markdown.tsx';
import { Button } from '../parts/button.tsx';
import { RelativeTime } from '../parts/times.tsx';
import { ToolName } from '../parts/tool-name.tsx';
import { useWords } from '../words/words.tsx';
import type { SentReply } from './reply-field.tsx';

type Message = SessionView['messages'][number];

export interface MessageListProps {
  readonly messages: readonly Message[];
  /** Answers that were accepted; shown until the conversation has them. */
  readonly sent: readonly SentReply[];
  readonly hasEarlier: boolean;
  readonly onEarlier: () => void;
}

/** What was said: the contact on the left, agent and staff on the right. It stays at its end while more comes. */
export function MessageList({ messages, sent, hasEarlier, onEarlier }: MessageListProps): ReactNode {
  const words = useWords().inbox;
  useEffect(preloadMarkdown, []);
  const stored = new Set(messages.map(({ turnId }) => turnId));
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
        {messages.map((message) => (
          <MessageItem key={message.id} message={message} />
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

function MessageItem({ message }: { readonly message: Message }): ReactNode {
  const words = useWords().inbox;
  switch (message.role) {
    case 'tool':
      return (
        <li className="text-right text-xs text-muted-foreground">
          <ToolName name={message.name} /> {message.isError && <span className="text-danger">{words.toolFailed}</span>}
        </li>
      );
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

interface BubbleProps {
  readonly side: 'contact' | 'us';
  readonly speaker: 'contact' | 'agent' | 'person';
  readonly at?: string;
  readonly note?: string | undefined;
  readonly children: ReactNode;
}

const looks = { contact: 'bg-muted', agent: 'bg-primary-soft', person: 'border border-warn bg-warn-soft' } as const;

function Bubble({ side, speaker, at, note, children }: BubbleProps): ReactNode {
  const words = useWords().inbox;
  return (
    <li className={`flex flex-col ${side === 'us' ? 'items-end' : 'items-start'}`}>
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
