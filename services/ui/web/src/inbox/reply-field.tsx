import { randomKey } from '@concierge/client';
import { codePoints, limits, routes } from '@concierge/contract';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import type { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { isWriting, useGrowingField } from '../chat/use-growing-field.ts';
import { useCanChange } from '../owner/owner-parts.tsx';
import { IconButton } from '../parts/button.tsx';
import { Choice } from '../parts/choice.tsx';
import { FileIcon, SendIcon, SpinnerIcon, StaffIcon } from '../parts/icons.tsx';
import { askAnew, useApi } from '../parts/use-api.tsx';
import { useKeptWords } from '../sign-in/use-kept-words.ts';
import { useExplain, useWords } from '../words/words.tsx';
import { AnswerList, useAnswerChoice } from './answer-choice.tsx';
import { useStaffName } from './staff-name.ts';

/** An answer that was accepted. */
export interface SentReply {
  readonly turnId: string;
  readonly text: string;
}

export interface ReplyFieldProps {
  readonly gateway: GatewayClient;
  readonly sessionId: string;
  /** Staff has the conversation; otherwise only notes are written. */
  readonly canAnswer: boolean;
  /** How often an answer was asked for by its key: each time the field gets the focus. */
  readonly replies: number;
  readonly onSent: (reply: SentReply) => void;
}

type Kind = 'answer' | 'note';

const maxCharacters = { answer: limits.messageMaxCharacters, note: limits.staffNoteMaxCharacters } as const;

/** Keeps a note, or sends an answer; the same words that are sent again after a failure are the same message. */
function useSending({ gateway, sessionId, onSent }: Pick<ReplyFieldProps, 'gateway' | 'sessionId' | 'onSent'>) {
  const api = useApi();
  const queries = useQueryClient();
  const author = useStaffName();
  const key = useRef<string | null>(null);
  const answer = async (message: string): Promise<void> => {
    key.current ??= randomKey();
    const turnId = await gateway.answerAsPerson(sessionId, { message, idempotencyKey: key.current });
    key.current = null;
    onSent({ turnId, text: message });
  };
  const note = async (text: string): Promise<void> => {
    await api.call(routes.addStaffNote, { params: { id: sessionId }, body: { text, ...(author !== '' && { author }) } });
    await askAnew(queries, { queryKey: [routes.getSessionStaff.id, { id: sessionId }] });
  };
  const forgetKey = (): void => {
    key.current = null;
  };
  return { answer, note, forgetKey };
}

/**
 * What is written, and what becomes of it. Who reads it is settled by its first character: the conversation may change
 * hands while it is written, and a note must not go to the contact then. Only the person who writes makes it another.
 */
function useReply({ canAnswer, ...options }: Omit<ReplyFieldProps, 'replies'>) {
  const explain = useExplain();
  const [text, setText] = useState('');
  useKeptWords(text);
  const [chosen, setChosen] = useState<Kind>('answer');
  const [begunAs, setBegunAs] = useState<Kind>('note');
  const openKind = canAnswer ? chosen : 'note';
  const kind = text === '' ? openKind : begunAs;
  const isBlocked = kind === 'answer' && !canAnswer;
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const sending = useSending(options);
  const isTooLong = codePoints(text) > maxCharacters[kind];
  const isSendable = !isSending && !isBlocked && text.trim() !== '' && !isTooLong;
  const send = async (): Promise<void> => {
    if (!isSendable) return;
    setSending(true);
    setProblem(null);
    try {
      await sending[kind](text.trim());
      setText('');
    } catch (error) {
      setProblem(explain(error));
    }
    setSending(false);
  };
  const change = (changed: string): void => {
    if (text === '') setBegunAs(kind);
    setText(changed);
    sending.forgetKey();
  };
  const choose = useCallback((wanted: Kind): void => {
    setChosen(wanted);
    setBegunAs(wanted);
  }, []);
  return { text, kind, choose, change, send, isSending, isSendable, isBlocked, isTooLong, problem };
}

/** Where staff answers the contact in the agent's place, or notes something for other staff. */
export function ReplyField({ replies, ...options }: ReplyFieldProps): ReactNode {
  const { canAnswer } = options;
  const words = useWords().inbox;
  const canChange = useCanChange();
  const { text, kind, choose, change, send, isSending, isSendable, isBlocked, isTooLong, problem } = useReply(options);
  const field = useGrowingField(text);
  const answers = useAnswerChoice(kind === 'answer' ? text : '', change);
  // When the key is pressed, and not once more when another takes the conversation over later.
  useEffect(() => {
    if (replies > 0) choose('answer');
  }, [replies, choose]);
  const focusedFor = useRef(0);
  useEffect(() => {
    if (replies === focusedFor.current || !canAnswer) return;
    focusedFor.current = replies;
    if (!isWriting()) field.current?.focus();
  }, [replies, canAnswer, field]);
  if (!canChange) return null;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing || answers.onKeyDown(event) || event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    void send();
  };
  const onKind = (wanted: Kind): void => {
    choose(wanted);
    // The choice is gone then, and with it the focus.
    if (!canAnswer) field.current?.focus();
  };
  return (
    <form
      className="px-3 pt-1 pb-[max(0.75rem,env(safe-area-inset-bottom))] sm:px-4"
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
      <AnswerList choice={answers} />
      <div className={`rounded-2xl border-2 focus-within:ring-1 ${looks[kind]}`}>
        <textarea
          ref={field}
          aria-label={kind === 'answer' ? words.answer : words.note}
          aria-describedby="reply-hint"
          {...(answers.activeId !== undefined && { 'aria-controls': answers.listId, 'aria-activedescendant': answers.activeId })}
          rows={1}
          placeholder={kind === 'answer' ? words.answerPlaceholder : words.notePlaceholder}
          readOnly={isSending}
          className="block max-h-[40vh] w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 text-sm outline-none placeholder:text-muted-foreground"
          value={text}
          onChange={({ target }) => change(target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="flex items-center gap-1.5 p-1.5">
          {(canAnswer || isBlocked) && <KindChoice kind={kind} onChange={onKind} />}
          <Hint kind={kind} isBlocked={isBlocked} isTooLong={isTooLong} />
          <IconButton
            type="submit"
            tone="primary"
            label={kind === 'answer' ? words.send : words.keepNote}
            className="rounded-xl!"
            disabled={!isSendable}
          >
            {isSending ? <SpinnerIcon /> : <SendIcon />}
          </IconButton>
        </div>
      </div>
    </form>
  );
}

const looks = {
  answer: 'border-warn bg-card focus-within:ring-warn',
  note: 'border-dashed border-input bg-muted focus-within:ring-ring',
} as const;

function KindChoice({ kind, onChange }: { readonly kind: Kind; readonly onChange: (kind: Kind) => void }): ReactNode {
  const words = useWords().inbox;
  return (
    <Choice
      label={words.kind}
      value={kind}
      options={[
        { value: 'answer', label: words.kinds.answer },
        { value: 'note', label: words.kinds.note },
      ]}
      onChange={onChange}
    />
  );
}

interface HintProps {
  readonly kind: Kind;
  readonly isBlocked: boolean;
  readonly isTooLong: boolean;
}

/** Who reads what is written here, or why it cannot be sent. */
function Hint({ kind, isBlocked, isTooLong }: HintProps): ReactNode {
  const words = useWords().inbox;
  const Icon = kind === 'answer' ? StaffIcon : FileIcon;
  const text = kind === 'answer' ? words.answerHint : words.noteHint;
  const problem = isBlocked ? words.answerBlocked : isTooLong ? words.tooLong : null;
  return (
    <p
      id="reply-hint"
      className={`flex min-w-0 flex-1 items-center gap-1.5 pl-1 text-xs ${kind === 'answer' ? 'text-warn' : 'text-muted-foreground'}`}
    >
      <Icon className="size-3.5 shrink-0" />
      {problem === null ? <span className="truncate">{text}</span> : <span role="status">{problem}</span>}
    </p>
  );
}
