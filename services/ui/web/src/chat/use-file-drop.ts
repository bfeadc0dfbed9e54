import { useEffect, useEffectEvent, useState } from 'react';

function carriesFiles(event: DragEvent): boolean {
  return event.dataTransfer?.types.includes('Files') === true;
}

/** Takes files dropped anywhere on the page. Returns whether some are being dragged over it. */
export function useFileDrop(onFiles: (files: File[]) => void): boolean {
  const [dragging, setDragging] = useState(false);
  const take = useEffectEvent(onFiles);
  useEffect(() => {
    const listeners = new AbortController();
    const listen = { signal: listeners.signal };
    addEventListener(
      'dragover',
      (event) => {
        if (!carriesFiles(event)) return;
        event.preventDefault();
        setDragging(true);
      },
      listen,
    );
    addEventListener(
      'dragleave',
      (event) => {
        // Left the window, not merely one element of it.
        if (event.relatedTarget === null) setDragging(false);
      },
      listen,
    );
    addEventListener(
      'drop',
      (event) => {
        setDragging(false);
        if (!carriesFiles(event)) return;
        event.preventDefault();
        take([...(event.dataTransfer?.files ?? [])]);
      },
      listen,
    );
    return () => {
      listeners.abort();
    };
  }, []);
  return dragging;
}
