import type { WidgetMessage } from '@concierge/contract';
import { cross, element, icon } from './dom.ts';
import { renderMarkdown } from './markdown.ts';
import type { Words } from './words.ts';

const LONGEST = 140;

/** The first words of a message that came while the panel was closed: they open it, or are put away. */
export class Preview {
  readonly node = element('div', { class: 'preview', role: 'status', hidden: '' });
  onOpen: () => void = () => undefined;
  onDismiss: (messageId: string) => void = () => undefined;
  readonly #words: Words;
  #shown: string | null = null;

  constructor(words: Words) {
    this.#words = words;
  }

  /** Null: nothing. */
  show(message: WidgetMessage | null): void {
    if (message?.id === this.#shown) return;
    this.#shown = message?.id ?? null;
    this.node.hidden = message === null;
    this.node.replaceChildren(...(message === null ? [] : this.#parts(message)));
  }

  #parts({ id, from, text }: WidgetMessage): HTMLElement[] {
    const words = element('button', { type: 'button', class: 'words' }, [
      element('span', { class: 'who' }, [this.#words[from]]),
      element('span', { dir: 'auto' }, [shorten(text)]),
    ]);
    words.addEventListener('click', () => this.onOpen());
    const dismiss = element('button', { type: 'button', class: 'dismiss', 'aria-label': this.#words.dismiss }, [icon(cross)]);
    dismiss.addEventListener('click', () => {
      this.show(null);
      this.onDismiss(id);
    });
    return [words, dismiss];
  }
}

function shorten(text: string): string {
  const plain = renderMarkdown(text)
    .map((block) => block.textContent)
    .join(' ');
  // Half of a pair at the end is no letter.
  return plain.length <= LONGEST ? plain : `${plain.slice(0, LONGEST).replace(/\p{Cs}$/u, '')}…`;
}
