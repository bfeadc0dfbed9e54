import { ConciergeError, randomKey } from '@concierge/client';
import { codePoints, limits } from '@concierge/contract';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { explain } from '../../../src/chat/chat-failure.ts';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { useGrowingField } from '../chat/use-growing-field.ts';
import { useCanChange } from '../owner/owner-parts.tsx';
import { IconButton } from '../parts/button.tsx';
import { SendIcon, SpinnerIcon, StaffIcon } from '../parts/icons.tsx';
import { useWords } from '../words/words.tsx';

/** An answer that was accepted. */
export interface SentReply {
  readonly turnId: string;
  readonly text: string;
}

export interface ReplyFieldProps {
  readonly gateway: GatewayClient;
  readonly sessionId: string;
  /** How often an answer was asked for by its key: each time the field gets the focus. */
  readonly replies: number;
  readonly onSent: (reply: SentReply) => void;
}

/** Sends what staff writes; the same words that are sent again after a failure are the same message. */
function useReply({ gateway, sessionId, onSent }: Omit<ReplyFieldProps, 'replies'>) {
  const [text, setText] = useState('');
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const key = useRef<string | null>(null);
  const isSendable = !isSending && text.trim() !== '' && codePoints(text) <= limits.messageMaxCharacters;
  const send = async (): Promise<void> => {
    if (!isSendable) return;
    key.current ??= randomKey();
    setSending(true);
    setProblem(null);
    try {
      const message = text.trim();
      const turnId = await gateway.answerAsPerson(sessionId, { message, idempotencyKey: key.current });
      key.current = null;
      setText('');
      onSent({ turnId, text: message });
    } catch (error) {
      setProblem(explain(ConciergeError.from(error)));
    }
    setSending(false);
  };
  const change = (changed: string): void => {
    setText(changed);
    key.current = null;
  };
  return { text, change, send, isSending, isSendable, problem };
}

/** Where staff answers the contact in the agent's place. */
export function ReplyField({ replies, ...options }: ReplyFieldProps): ReactNode {
  const words = useWords().inbox;
  const canChange = useCanChange();
  const { text, change, send, isSending, isSendable, problem } = useReply(options);
  const field = useGrowingField(text);
  useEffect(() => {
    if (replies > 0) field.current?.focus();
  }, [replies, field]);
  if (!canChange) return null;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    void send();
  };
  return (
    <form
      className="px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-4"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {problem !== null && (
        <p role="alert" className="mb-2 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
          {words.notSent(problem)}
        </p>
      )}
      <div className="rounded-2xl border-2 border-warn bg-card focus-within:ring-1 focus-within:ring-warn">
        <textarea
          ref={field}
          aria-label={words.answer}
          aria-describedby="reply-hint"
          rows={1}
          placeholder={words.answerPlaceholder}
          readOnly={isSending}
          className="block max-h-[40vh] w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 text-sm outline-none placeholder:text-muted-foreground"
          value={text}
          onChange={({ target }) => change(target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="flex items-center gap-1.5 p-1.5">
          <p id="reply-hint" className="flex min-w-0 flex-1 items-center gap-1.5 truncate pl-2 text-xs text-warn">
            <StaffIcon className="size-3.5 shrink-0" />
            {codePoints(text) > limits.messageMaxCharacters ? words.tooLong : words.answerHint}
          </p>
          <IconButton type="submit" tone="primary" label={words.send} className="rounded-xl!" disabled={!isSendable}>
            {isSending ? <SpinnerIcon /> : <SendIcon />}
          </IconButton>
        </div>
      </div>
    </form>
  );
}
