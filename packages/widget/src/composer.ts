import { element } from './dom.ts';
import type { Words } from './words.ts';

const TALLEST_PIXELS = 140;

export interface ComposerEvents {
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
  /** What stands in the field now. */
  readonly onWrite: (text: string) => void;
}

/** Where the visitor writes. */
export class Composer {
  readonly node: HTMLFormElement;
  readonly #events: ComposerEvents;
  readonly #input: HTMLTextAreaElement;
  readonly #send: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  #maySend = true;

  constructor(words: Words, events: ComposerEvents) {
    this.#events = events;
    this.#input = element('textarea', {
      rows: '1',
      'aria-label': words.message,
      placeholder: words.placeholder,
      enterkeyhint: 'send',
      dir: 'auto',
    });
    this.#send = element('button', { type: 'submit' }, [words.send]);
    this.#stop = element('button', { type: 'button', class: 'stop', hidden: '' }, [words.stop]);
    this.node = element('form', {}, [this.#input, this.#stop, this.#send]);
    this.#listen();
  }

  focus(): void {
    this.#input.focus();
  }

  /** Puts a text that was written earlier into the field. */
  write(text: string): void {
    this.#input.value = text;
    this.fit();
  }

  /** As high as its text. */
  fit(): void {
    this.#input.style.height = 'auto';
    this.#input.style.height = `${String(Math.min(this.#input.scrollHeight + 2, TALLEST_PIXELS))}px`;
  }

  draw({ isAnswering, maySend }: { readonly isAnswering: boolean; readonly maySend: boolean }): void {
    this.#stop.hidden = !isAnswering;
    this.#maySend = maySend;
    this.#send.disabled = !maySend;
  }

  #listen(): void {
    this.node.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#stop.addEventListener('click', () => this.#events.onStop());
    this.#input.addEventListener('input', () => {
      this.fit();
      this.#events.onWrite(this.#input.value);
    });
    this.#input.addEventListener('keydown', (event) => {
      // Enter that ends the composition of a character is not the end of the message.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
  }

  #submit(): void {
    const text = this.#input.value.trim();
    if (text === '' || !this.#maySend) return;
    this.write('');
    this.#events.onWrite('');
    this.#events.onSend(text);
  }
}
