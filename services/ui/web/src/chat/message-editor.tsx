import { codePoints, limits } from '@concierge/contract';
import { useEffect, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { useWords } from '../words/words.tsx';
import { useGrowingField } from './use-growing-field.ts';

export interface MessageEditorProps {
  readonly text: string;
  /** What the button does with the words. */
  readonly action: string;
  /** Null while it cannot be saved: it does not wait any more. */
  readonly onSave: ((text: string) => void) | null;
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
  const isGood = onSave !== null && text.trim() !== '' && codePoints(text) <= limits.messageMaxCharacters;
  const save = (): void => {
    if (isGood) onSave(text.trim());
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'Escape') onCancel();
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    save();
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
      {onSave === null && (
        <p role="status" className="px-2 text-xs text-warn">
          {words.notWaiting}
        </p>
      )}
      <div className="mt-1 flex justify-end gap-2">
        <Button tone="quiet" onClick={onCancel}>
          {words.cancel}
        </Button>
        <Button tone="primary" disabled={!isGood} onClick={save}>
          {action}
        </Button>
      </div>
    </div>
  );
}
