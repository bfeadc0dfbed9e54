import { codePoints, limits } from '@concierge/contract';
import { useEffect, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { useWords } from '../words/words.tsx';
import { useGrowingField } from './use-growing-field.ts';

export interface MessageEditorProps {
  readonly text: string;
  /** What the button does with the words. */
  readonly action: string;
  readonly onSave: (text: string) => void;
  readonly onCancel: () => void;
}

/** A message of one's own that is written anew, in its place. */
export function MessageEditor({ text: before, action, onSave, onCancel }: MessageEditorProps): ReactNode {
  const words = useWords().chat.turn;
  const [text, setText] = useState(before);
  const field = useGrowingField(text);
  useEffect(() => {
    field.current?.focus();
  }, [field]);
  const isGood = text.trim() !== '' && codePoints(text) <= limits.messageMaxCharacters;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onCancel();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    if (isGood) onSave(text.trim());
  };
  return (
    <div className="rounded-2xl border border-input bg-card p-2">
      <textarea
        ref={field}
        aria-label={words.edited}
        rows={1}
        className="block max-h-[40vh] w-full resize-none bg-transparent px-2 py-1 outline-none"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="mt-1 flex justify-end gap-2">
        <Button tone="quiet" onClick={onCancel}>
          {words.cancel}
        </Button>
        <Button tone="primary" disabled={!isGood} onClick={() => onSave(text.trim())}>
          {action}
        </Button>
      </div>
    </div>
  );
}
