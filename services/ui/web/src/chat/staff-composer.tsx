import { randomKey } from '@concierge/client';
import { codePoints, limits } from '@concierge/contract';
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { CopyButton, IconButton } from '../parts/button.tsx';
import { CloseIcon, StaffIcon, SendIcon, SpinnerIcon } from '../parts/icons.tsx';
import { isWriting, useGrowingField } from './use-growing-field.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { useKeptWords } from '../sign-in/use-kept-words.ts';

/** An answer of staff while it is written and sent. */
export interface StaffAnswer {
  readonly text: string;
  readonly change: (text: string) => void;
  /** Resolves when it is accepted, or `problem` says why it is not. */
  readonly send: () => Promise<void>;
  readonly sending: boolean;
  readonly problem: string | null;
}

/**
 * Keeps what staff writes, also while the agent has the conversation again and the field is gone.
 *
 * @param onAnswer Rejects when it was not accepted; the same key then sends the same message.
 */
export function useStaffAnswer(onAnswer: (text: string, key: string) => Promise<void>): StaffAnswer {
  const explain = useExplain();
  const [text, setText] = useState('');
  useKeptWords(text);
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const key = useRef<string | null>(null);
  const change = (changed: string): void => {
    setText(changed);
    // Other words are another message.
    key.current = null;
  };
  const send = async (): Promise<void> => {
    key.current ??= randomKey();
    setSending(true);
    setProblem(null);
    try {
      await onAnswer(text.trim(), key.current);
      key.current = null;
      setText('');
    } catch (error) {
      setProblem(explain(error));
    }
    setSending(false);
  };
  return { text, change, send, sending, problem };
}

/**
 * Where staff answers in the agent's place. It looks unlike the other composer: the contact reads what is written here.
 */
export function StaffComposer({ answer }: { readonly answer: StaffAnswer }): ReactNode {
  const words = useWords().chat.staff;
  const { text, sending, problem } = answer;
  const field = useGrowingField(text);
  const length = codePoints(text);
  const sendable = !sending && text.trim() !== '' && length <= limits.messageMaxCharacters;

  const send = async (): Promise<void> => {
    if (!sendable) return;
    await answer.send();
    // Accepted late, it must not take the next letters of a field that has been gone on to.
    if (!isWriting()) field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    void send();
  };

  return (
    <form
      className="mx-auto w-full max-w-3xl px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-5"
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
      <div className="rounded-2xl border-2 border-warn bg-card shadow-sm focus-within:ring-1 focus-within:ring-warn">
        <textarea
          ref={field}
          aria-label={words.answer}
          aria-describedby="person-composer-hint"
          rows={1}
          placeholder={words.placeholder}
          readOnly={sending}
          className="block max-h-[40vh] w-full resize-none bg-transparent px-4 pt-3 pb-1 outline-none placeholder:text-muted-foreground"
          value={text}
          onChange={({ target }) => answer.change(target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="flex items-center gap-1.5 p-2">
          <p id="person-composer-hint" className="flex min-w-0 flex-1 items-center gap-1.5 truncate pl-2 text-xs text-warn">
            <StaffIcon className="size-3.5 shrink-0" />
            {length > limits.messageMaxCharacters ? words.tooLong : words.hint}
          </p>
          <IconButton type="submit" tone="primary" label={words.send} className="rounded-xl!" disabled={!sendable}>
            {sending ? <SpinnerIcon /> : <SendIcon />}
          </IconButton>
        </div>
      </div>
    </form>
  );
}

/** The answer that has not gone when the agent has the conversation again; nothing where there is none. */
export function UnsentAnswer({ answer: { text, change, sending } }: { readonly answer: StaffAnswer }): ReactNode {
  const words = useWords().chat.staff;
  if (sending || text.trim() === '') return null;
  return (
    <section aria-label={words.unsent} className="mx-auto mb-2 w-full max-w-3xl px-3 sm:px-5">
      <div className="rounded-lg bg-warn-soft px-3 py-2 text-sm">
        <p className="text-warn">{words.unsentText}</p>
        <div className="mt-1.5 flex items-start gap-1">
          <p className="max-h-40 min-w-0 flex-1 overflow-y-auto whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</p>
          <CopyButton text={text} label={words.copyUnsent} />
          <IconButton label={words.discardUnsent} className="size-7!" onClick={() => change('')}>
            <CloseIcon className="size-3.5" />
          </IconButton>
        </div>
      </div>
    </section>
  );
}
