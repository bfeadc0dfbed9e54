import { Attachments } from './attachments.ts';
import { element } from './dom.ts';
import type { KeptFile } from './gateway.ts';
import type { Words } from './words.ts';

const TALLEST_PIXELS = 140;
/**
 * `limits.messageMaxCharacters`, which would bring the contract's code into the page. A browser counts UTF-16 units:
 * what it lets in is never longer for the service, which counts code points.
 */
const MESSAGE_MAX_CHARACTERS = 32_000;

export interface ComposerEvents {
  readonly onSend: (text: string, files: readonly KeptFile[]) => void;
  readonly onStop: () => void;
  /** What stands in the field now. */
  readonly onWrite: (text: string) => void;
  /** Keeps a file for the next message; undefined where none may be sent. */
  readonly upload?: ((file: File, signal: AbortSignal) => Promise<KeptFile>) | undefined;
}

/** Where the visitor writes. */
export class Composer {
  readonly node: HTMLFormElement;
  readonly #events: ComposerEvents;
  readonly #input: HTMLTextAreaElement;
  readonly #send: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  /** Null where no files may be sent. */
  readonly #attachments: Attachments | null;
  #maySend = true;

  constructor(words: Words, events: ComposerEvents) {
    this.#events = events;
    this.#input = element('textarea', {
      rows: '1',
      'aria-label': words.message,
      placeholder: words.placeholder,
      enterkeyhint: 'send',
      dir: 'auto',
      maxlength: String(MESSAGE_MAX_CHARACTERS),
    });
    this.#send = element('button', { type: 'submit' }, [words.send]);
    this.#stop = element('button', { type: 'button', class: 'stop', hidden: '' }, [words.stop]);
    const { upload } = events;
    this.#attachments = upload === undefined ? null : new Attachments({ words, upload, onChange: () => this.#allow() });
    const attach = this.#attachments === null ? [] : [this.#attachments.node, this.#attachments.button];
    this.node = element('form', {}, [...attach, this.#input, this.#stop, this.#send]);
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
    this.#allow();
  }

  /** Files that were dropped or pasted. True where they are taken. */
  takeFiles(data: DataTransfer | null): boolean {
    const files = [...(data?.files ?? [])];
    if (this.#attachments === null || files.length === 0) return false;
    this.#attachments.add(files);
    return true;
  }

  #allow(): void {
    this.#send.disabled = !this.#maySend || this.#attachments?.isWaiting === true;
  }

  #listen(): void {
    this.#input.addEventListener('paste', (event) => {
      if (this.takeFiles(event.clipboardData)) event.preventDefault();
    });
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
    const written = this.#input.value.trim();
    if (this.#send.disabled || (written === '' && this.#attachments?.isEmpty !== false)) return;
    const files = this.#attachments?.take() ?? [];
    this.write('');
    this.#events.onWrite('');
    // A message has words: those of files alone are their names.
    this.#events.onSend(written === '' ? files.map(({ name }) => name).join(', ') : written, files);
  }
}
