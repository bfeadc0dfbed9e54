import { Suspense, lazy, type ComponentProps, type ReactNode } from 'react';
import type { Markdown } from './markdown.tsx';

const load = async () => import('./markdown.tsx').then((module) => ({ default: module.Markdown }));
const LoadedMarkdown = lazy(load);

/** Fetches the renderer before it is needed. */
export function preloadMarkdown(): void {
  load().catch(() => undefined);
}

/** Markdown, and the text itself until the renderer is there. */
export function LazyMarkdown(props: ComponentProps<typeof Markdown>): ReactNode {
  return (
    <Suspense fallback={<div className="whitespace-pre-wrap [overflow-wrap:anywhere]">{props.text}</div>}>
      <LoadedMarkdown {...props} />
    </Suspense>
  );
}
