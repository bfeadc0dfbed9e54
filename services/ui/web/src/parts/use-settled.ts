import { useEffect, useState } from 'react';

const SETTLED_AFTER_MS = 300;

/** The text once no key has been pressed for a moment: what is asked for it is not asked for at every key. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), SETTLED_AFTER_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [text]);
  return settled;
}
