import { useLayoutEffect, useRef, type RefObject } from 'react';

/** A field that is as high as its text. */
export function useGrowingField(text: string): RefObject<HTMLTextAreaElement | null> {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = 'auto';
    area.style.height = `${String(area.scrollHeight)}px`;
  }, [text]);
  return field;
}

/** Whether the user writes in a field: no other one takes the focus then, for its next letters are not for that. */
export function isWriting(): boolean {
  return document.activeElement?.matches(':read-write, select') === true;
}
