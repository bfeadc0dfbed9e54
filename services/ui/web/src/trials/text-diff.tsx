import type { ReactNode } from 'react';
import { diffLines } from '../../../src/line-diff.ts';
import { useWords } from '../words/words.tsx';

const signs = { same: ' ', added: '+', removed: '-' } as const;
const looks = { same: '', added: 'bg-muted text-ok', removed: 'bg-danger-soft text-danger' } as const;

interface TextDiffProps {
  /** Of what to what, in words. */
  readonly label: string;
  readonly before: string;
  readonly after: string;
}

/** What was changed in a text, line by line; also for the keyboard, which scrolls it. */
export function TextDiff({ label, before, after }: TextDiffProps): ReactNode {
  const words = useWords().tools.history;
  const lines = diffLines(before, after);
  return (
    <figure className="mt-3">
      <figcaption className="mb-1 text-sm">{label}</figcaption>
      {lines.every(({ kind }) => kind === 'same') ? (
        <p className="text-sm text-muted-foreground">{words.same}</p>
      ) : (
        <pre tabIndex={0} aria-label={label} role="region" className="max-h-[50vh] overflow-auto rounded-xl border p-3 text-xs leading-5">
          {lines.map(({ kind, text }, index) => (
            // eslint-disable-next-line react/no-array-index-key -- lines have no other name, and are never moved
            <span key={index} className={`block min-h-5 ${looks[kind]}`}>
              {signs[kind]} {text}
            </span>
          ))}
        </pre>
      )}
    </figure>
  );
}
