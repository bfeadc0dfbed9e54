import type { WidgetLanguage } from '@concierge/contract';
import type { Entry } from './conversation.ts';
import { clip, element, icon } from './dom.ts';
import { renderMarkdown } from './markdown.ts';
import type { Words } from './words.ts';

const DAY_MS = 24 * 3_600_000;

/** A message as it stands in the panel, and what it was made of. */
interface Drawn {
  readonly node: HTMLElement;
  readonly text: string;
  readonly state: Entry['state'];
}

/** The messages, one below the other. */
export class Transcript {
  readonly node: HTMLElement;
  readonly #words: Words;
  readonly #language: WidgetLanguage;
  readonly #drawn = new Map<string, Drawn>();

  constructor(words: Words, language: WidgetLanguage) {
    this.#words = words;
    this.#language = language;
    this.node = element('div', { class: 'log', role: 'log', 'aria-live': 'polite', 'aria-label': words.conversation, tabindex: '0' });
  }

  /** Lets something be drawn, here or around it: it stays at its end where it was there. */
  keepEnd(draw: () => void): void {
    const atEnd = this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 40;
    draw();
    if (atEnd) this.scrollDown();
  }

  draw(entries: readonly Entry[]): void {
    // While it grows, a screen reader would read every piece of it.
    this.node.setAttribute('aria-busy', String(entries.some(({ state }) => state !== 'still')));
    const { greeting } = this.#words;
    this.#drawAll(
      greeting === '' ? entries : [{ id: 'greeting', from: 'agent', text: greeting, files: [], atMs: null, state: 'still' }, ...entries],
    );
  }

  scrollDown(): void {
    this.node.scrollTop = this.node.scrollHeight;
  }

  #drawAll(entries: readonly Entry[]): void {
    const ids = new Set(entries.map(({ id }) => id));
    for (const [id, { node }] of this.#drawn) {
      if (ids.has(id)) continue;
      node.remove();
      this.#drawn.delete(id);
    }
    let before: HTMLElement | null = null;
    for (const entry of entries) {
      const node = this.#drawOne(entry);
      const next: ChildNode | null = before === null ? this.node.firstChild : before.nextSibling;
      if (next !== node) this.node.insertBefore(node, next);
      before = node;
    }
  }

  #drawOne({ id, from, text, files, atMs, state }: Entry): HTMLElement {
    const drawn = this.#drawn.get(id);
    if (drawn?.text === text && drawn.state === state) return drawn.node;
    const node = drawn?.node ?? element('div', { class: 'message', 'data-from': from });
    node.dataset['state'] = state;
    const time = atMs === null ? [] : [this.#buildTime(atMs)];
    const who = element('span', { class: 'who' }, [this.#words[from], ...time]);
    if (state === 'typing') node.replaceChildren(who, this.#buildDots());
    else if (from === 'visitor') node.replaceChildren(element('div', { class: 'said', dir: 'auto' }, [text]), ...listFiles(files), ...time);
    else node.replaceChildren(who, ...renderMarkdown(text));
    this.#drawn.set(id, { node, text, state });
    return node;
  }

  #buildTime(atMs: number): HTMLElement {
    const at = new Date(atMs);
    const isToday = Math.abs(Date.now() - atMs) < DAY_MS && at.getDate() === new Date().getDate();
    const day = isToday ? {} : ({ day: 'numeric', month: 'short' } as const);
    const shown = new Intl.DateTimeFormat(this.#language, { hour: 'numeric', minute: '2-digit', ...day }).format(at);
    return element('time', { datetime: at.toISOString() }, [shown]);
  }

  #buildDots(): HTMLElement {
    return element('span', { class: 'dots', role: 'img', 'aria-label': this.#words.writing }, [element('i'), element('i'), element('i')]);
  }
}

function listFiles(names: readonly string[]): HTMLElement[] {
  return names.map((name) => element('div', { class: 'file', dir: 'auto' }, [icon(clip), name]));
}
