import { useEffect, useState, type ComponentProps, type ReactNode } from 'react';
import type { Markdown } from './markdown.tsx';

let loaded: typeof Markdown | null = null;

async function load(): Promise<typeof Markdown> {
  loaded ??= (await import('./markdown.tsx')).Markdown;
  return loaded;
}

/** Fetches the renderer before it is needed. */
export function preloadMarkdown(): void {
  load().catch(() => undefined);
}

/**
 * Markdown, and the text itself as long as the renderer is not there, also where it cannot be had: after a deploy its
 * file has another name.
 */
export function LazyMarkdown(props: ComponentProps<typeof Markdown>): ReactNode {
  const [Loaded, setLoaded] = useState<typeof Markdown | null>(() => loaded);
  useEffect(() => {
    let isShown = true;
    load().then(
      (Renderer) => {
        if (isShown) setLoaded(() => Renderer);
      },
      () => undefined,
    );
    return () => {
      isShown = false;
    };
  }, []);
  if (Loaded === null) return <div className="whitespace-pre-wrap [overflow-wrap:anywhere]">{props.text}</div>;
  return <Loaded {...props} />;
}
