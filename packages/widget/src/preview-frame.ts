import { readFields, readLook, readText } from './gateway.ts';
import { Panel, type Shown } from './panel.ts';
import { chooseLanguage } from './words.ts';

/** A visitor has waved: in their words, the owner sees the colour. In every language it is the same. */
const sample: Shown = {
  entries: [{ id: 'sample', from: 'visitor', text: '\u{1F44B}', files: [], atMs: null, state: 'still' }],
  troubles: [],
  problem: null,
  withPerson: false,
  isAnswering: false,
  // Nothing leaves the frame.
  maySend: false,
};

const ignore = (): void => undefined;
let panel: Panel | null = null;

/** The real panel, in a frame of the console, as its owner has just set it. It sends nothing and remembers nothing. */
function show(data: unknown): void {
  const { look, language } = readFields(data);
  const chosen = chooseLanguage([readText(language)]);
  document.documentElement.lang = chosen;
  panel?.remove();
  panel = new Panel(readLook(look), chosen, {
    onSend: ignore,
    onStop: ignore,
    onRetry: ignore,
    onOpenChange: ignore,
    onWrite: ignore,
    onDismiss: ignore,
    upload: async () => new Promise(ignore),
  });
  panel.draw(sample);
  panel.open(false);
}

addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
  // The page that carries the frame, and no other.
  if (source === parent) show(data);
});
