import { routes, type SavedAnswer } from '@concierge/contract';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Link } from 'wouter';
import { useRead } from '../parts/use-api.tsx';
import { useWords } from '../words/words.tsx';

const SHOWN = 20;

export interface AnswerChoice {
  readonly isOpen: boolean;
  /** What there is to choose from is not known yet. */
  readonly isLoading: boolean;
  readonly answers: readonly SavedAnswer[];
  /** Of the one that Enter takes. */
  readonly activeId: string | undefined;
  readonly listId: string;
  /** True when the key was meant for the list. */
  readonly onKeyDown: (event: KeyboardEvent) => boolean;
  readonly choose: (answer: SavedAnswer) => void;
}

/** Saved answers while the text begins with a slash: those whose name or text has what follows it. */
export function useAnswerChoice(text: string, onChosen: (text: string) => void): AnswerChoice {
  const isAsked = text.startsWith('/') && !text.includes('\n');
  const { data = [], isPending: isLoading } = useRead(routes.listAnswers, {}, { isEnabled: isAsked });
  const [closedFor, setClosedFor] = useState<string | null>(null);
  const [active, setActive] = useState(0);
  const part = text.slice(1).trim().toLowerCase();
  const answers = data.filter(({ name, text: words }) => `${name}\n${words}`.toLowerCase().includes(part)).slice(0, SHOWN);
  const isOpen = isAsked && closedFor !== text;
  const at = Math.max(0, Math.min(active, answers.length - 1));
  const choose = (answer: SavedAnswer): void => {
    setActive(0);
    onChosen(answer.text);
  };
  const onKeyDown = (event: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    const chosen = answers[at];
    if (event.key === 'Escape') setClosedFor(text);
    else if (event.key === 'ArrowDown') setActive(Math.min(at + 1, answers.length - 1));
    else if (event.key === 'ArrowUp') setActive(Math.max(at - 1, 0));
    else if (event.key === 'Enter' && chosen !== undefined) choose(chosen);
    // Before the list is there, the contact would be sent what asks for an answer in its place.
    else if (event.key !== 'Enter' || event.shiftKey || !isLoading) return false;
    event.preventDefault();
    return true;
  };
  const activeId = isOpen && answers.length > 0 ? toOptionId(at) : undefined;
  return { isOpen, isLoading, answers, activeId, listId: 'saved-answers', onKeyDown, choose };
}

const toOptionId = (index: number): string => `saved-answer-${String(index)}`;

/** Nothing while the text asks for none. */
export function AnswerList({ choice }: { readonly choice: AnswerChoice }): ReactNode {
  const { inbox: words, parts } = useWords();
  const { isOpen, isLoading, answers, activeId, listId, choose } = choice;
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (activeId !== undefined) list.current?.querySelector(`#${activeId}`)?.scrollIntoView({ block: 'nearest' });
  }, [activeId]);
  if (!isOpen) return null;
  const said = 'mb-2 rounded-xl border bg-card px-3 py-2 text-sm text-muted-foreground';
  if (isLoading) {
    return (
      <p role="status" className={said}>
        {parts.loading}
      </p>
    );
  }
  if (answers.length === 0) {
    return (
      <p role="status" className={said}>
        {words.noAnswers}{' '}
        <Link href="/files" className="text-primary underline">
          {words.noAnswersHelp}
        </Link>
      </p>
    );
  }
  return (
    <div
      ref={list}
      id={listId}
      role="listbox"
      aria-label={words.answers}
      className="mb-2 max-h-56 overflow-y-auto rounded-xl border bg-card p-1 text-sm shadow-md"
    >
      {answers.map((answer, index) => (
        <div
          key={answer.name}
          id={toOptionId(index)}
          role="option"
          aria-selected={toOptionId(index) === activeId}
          className="cursor-pointer rounded-lg px-2.5 py-1.5 hover:bg-muted aria-selected:bg-primary-soft forced-colors:aria-selected:outline"
          // Before the field loses the focus.
          onMouseDown={(event) => {
            event.preventDefault();
            choose(answer);
          }}
        >
          <span className="block font-medium">{answer.name}</span>
          <span className="block truncate text-muted-foreground">{answer.text}</span>
        </div>
      ))}
    </div>
  );
}
