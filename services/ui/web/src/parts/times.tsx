import { useEffect, useState, type ReactNode } from 'react';
import { useFormats } from '../words/words.tsx';

const SHOWN_EVERY_MS = 10_000;

/** The present time, often enough for times that are shown in minutes. */
export function useNow(everyMs = SHOWN_EVERY_MS): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => {
      clearInterval(timer);
    };
  }, [everyMs]);
  return now;
}

/** How long ago, with the exact time on hover. */
export function RelativeTime({ at }: { readonly at: string }): ReactNode {
  const formats = useFormats();
  const now = useNow();
  return (
    <time dateTime={at} title={formats.exactTime(at)} className="whitespace-nowrap tabular-nums">
      {formats.relative(at, Math.max(now, Date.now()))}
    </time>
  );
}

/** How long something has lasted, with its begin on hover. */
export function Duration({ ms, since }: { readonly ms: number; readonly since?: string | undefined }): ReactNode {
  const formats = useFormats();
  return (
    <span title={since === undefined ? undefined : formats.exactTime(since)} className="whitespace-nowrap tabular-nums">
      {formats.duration(ms)}
    </span>
  );
}
