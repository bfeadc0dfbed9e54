import type { WidgetBody } from '@concierge/contract';
import { useCallback, useEffect, useRef, type ReactNode } from 'react';
import { useWords } from '../words/words.tsx';

interface WidgetPreviewProps extends Pick<WidgetBody, 'appearance' | 'display'> {
  readonly language: string;
}

/** The real panel as it would be, in a frame that may send nothing. */
export function WidgetPreview({ appearance, display, language }: WidgetPreviewProps): ReactNode {
  const words = useWords().owner.settings.look;
  const frame = useRef<HTMLIFrameElement>(null);
  const show = useCallback(() => {
    // To an origin that has no name; what is sent is what a visitor of any site would see.
    frame.current?.contentWindow?.postMessage({ look: { appearance, display }, language }, '*');
  }, [appearance, display, language]);
  useEffect(show, [show]);
  return (
    <div>
      <p className="mb-1 text-xs font-medium text-muted-foreground">{words.preview}</p>
      <iframe
        ref={frame}
        title={words.preview}
        src="/widget-preview.html"
        sandbox="allow-scripts"
        className="h-[36rem] w-full rounded-lg border bg-muted"
        onLoad={show}
      />
    </div>
  );
}
