import { coversPage } from './styles.ts';

const reachable = 'a[href], button:enabled, textarea:enabled, [tabindex="0"]';

/** Where the panel covers the page, as on a phone, it is all that there is: the focus stays in it while it is open. */
export class FocusTrap {
  readonly #panel: HTMLElement;
  readonly #media = matchMedia(coversPage);
  readonly #over = new AbortController();

  constructor(panel: HTMLElement) {
    this.#panel = panel;
    const { signal } = this.#over;
    this.#media.addEventListener('change', () => this.update(), { signal });
    addEventListener('focus', () => this.update(), { signal });
    panel.addEventListener('keydown', (event) => this.#turnAround(event), { signal });
    this.update();
  }

  /** After it was opened or closed, or the page was come to. */
  update(): void {
    if (!this.#isAll) {
      this.#panel.removeAttribute('aria-modal');
      return;
    }
    this.#panel.setAttribute('aria-modal', 'true');
    // A window that is not looked at waits until it is.
    if (this.#panel.hidden || this.#focused !== null || !document.hasFocus()) return;
    // Not its field: a phone would show its keyboard.
    this.#panel.focus({ preventScroll: true });
  }

  stop(): void {
    this.#over.abort();
  }

  /**
   * Around a page in a frame, as the console's preview is, there is more: it takes the focus from nothing, and lets it
   * go.
   */
  get #isAll(): boolean {
    return parent === window && this.#media.matches;
  }

  get #focused(): Element | null {
    const root = this.#panel.getRootNode();
    return root instanceof ShadowRoot && this.#panel.contains(root.activeElement) ? root.activeElement : null;
  }

  /** From the last one to the first one, and back. */
  #turnAround(event: KeyboardEvent): void {
    if (event.key !== 'Tab' || !this.#isAll) return;
    const all = [...this.#panel.querySelectorAll<HTMLElement>(reachable)].filter((one) => one.getClientRects().length > 0);
    const [from, to] = event.shiftKey ? [all.at(0), all.at(-1)] : [all.at(-1), all.at(0)];
    const focused = this.#focused;
    if (focused !== from && !(event.shiftKey && focused === this.#panel)) return;
    event.preventDefault();
    to?.focus();
  }
}
