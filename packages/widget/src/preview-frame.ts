import { readFields, readLook, readText } from './gateway.ts';
import { Panel, type Shown } from './panel.ts';
import { chooseLanguage } from './words.ts';

/** A conversation that has not begun. */
const nothing: Shown = { entries: [], troubles: [], problem: null, withPerson: false, isAnswering: false, maySend: false };

const ignore = (): void => undefined;
let panel: Panel | null = null;

/** The real panel, in a frame of the console, as its owner has just set it. It sends nothing and remembers nothing. */
function show(data: unknown): void {
  const { look, language } = readFields(data);
  panel?.remove();
  panel = new Panel(readLook(look), chooseLanguage([readText(language)]), {
    onSend: ignore,
    onStop: ignore,
    onRetry: ignore,
    onOpenChange: ignore,
    onWrite: ignore,
    onDismiss: ignore,
    upload: async () => new Promise(ignore),
  });
  panel.draw(nothing);
  panel.open(false);
}

addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
  // The page that carries the frame, and no other.
  if (source === parent) show(data);
});
