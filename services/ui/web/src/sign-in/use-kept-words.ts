import { useEffect, useRef } from 'react';
import { ownerSession } from './owner-session.ts';
import { unsentWords } from './unsent-words.ts';

/** A refused key takes the page away, and not the words. */
export function useKeptWords(text: string): void {
  const latest = useRef(text);
  useEffect(() => {
    latest.current = text;
  }, [text]);
  useEffect(
    () => () => {
      if (ownerSession.isRefused) unsentWords.keep([latest.current]);
    },
    [],
  );
}
