import { ConciergeError } from '@concierge/client';
import { Widget } from './widget.ts';
import { describeFailure } from './words.ts';

declare global {
  interface Window {
    /** What the page that carries the widget may do with it; there from the event `concierge:ready` on. */
    concierge?: Pick<Widget, 'open' | 'close' | 'reset' | 'setToken'>;
  }
}

/** Logs a message to the developer of the page; visitors see nothing of it. */
function warn(words: string): void {
  console.warn(`Concierge: ${words}`); // eslint-disable-line no-console -- the only place where a site's owner looks
}

function begin(script: HTMLScriptElement): void {
  const { key, token } = script.dataset;
  if (key === undefined) {
    warn('the script has no data-key.');
    return;
  }
  const widget = new Widget({ base: script.src, key, token: token ?? null });
  window.concierge = {
    open: () => widget.open(),
    close: () => widget.close(),
    reset: () => widget.reset(),
    setToken: (next) => widget.setToken(next),
  };
  dispatchEvent(new Event('concierge:ready'));
  void widget.start().catch((error: unknown) => {
    const { code } = ConciergeError.from(error);
    warn(
      `the widget is not shown (${code}: ${describeFailure(code)}). Is it enabled, is the key the one in force, and is ${location.origin} one of its origins?`,
    );
  });
}

const { currentScript } = document;
// A second script on the same page would be a second panel over the first.
if (currentScript instanceof HTMLScriptElement && window.concierge === undefined) {
  if (document.body === null) document.addEventListener('DOMContentLoaded', () => begin(currentScript), { once: true });
  else begin(currentScript);
}
