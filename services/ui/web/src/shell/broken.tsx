import type { ReactNode } from 'react';
import { Button } from '../parts/button.tsx';
import { useWords } from '../words/words.tsx';

/** What remains when a part of the page throws while it is drawn, or cannot be loaded: never an empty page. */
export function Broken(): ReactNode {
  const { broken } = useWords().shell;
  return (
    <main role="alert" className="flex h-full flex-col items-center justify-center gap-3 p-6 text-center">
      <p className="max-w-md">{broken.text}</p>
      <Button onClick={() => location.reload()}>{broken.reload}</Button>
    </main>
  );
}
