import { ConciergeError } from '@concierge/client';
import { clip, cross, element, icon } from './dom.ts';
import type { KeptFile } from './gateway.ts';
import { describeFailure, type Words } from './words.ts';

/** As the service has them: what is beyond is refused before it is sent. */
const FILES_MAX = 10;
const BYTES_MAX = 10 * 1024 * 1024;

export interface AttachmentsOptions {
  readonly words: Words;
  readonly upload: (file: File, signal: AbortSignal) => Promise<KeptFile>;
  /** Called when there is one more or less, or one is ready. */
  readonly onChange: () => void;
}

/** A file that was chosen: on its way to the service, or there. */
interface Chosen {
  readonly node: HTMLElement;
  readonly left: AbortController;
  kept: KeptFile | null;
}

/** The files that go with the next message. */
export class Attachments {
  /** The button that asks for files. */
  readonly button: HTMLButtonElement;
  /** The files, and why one was refused. */
  readonly node: HTMLElement;
  readonly #options: AttachmentsOptions;
  readonly #refusal = element('div', { class: 'refusal', role: 'alert' });
  readonly #input = element('input', { type: 'file', multiple: '', hidden: '' });
  #chosen: Chosen[] = [];

  constructor(options: AttachmentsOptions) {
    this.#options = options;
    this.button = element('button', { type: 'button', class: 'attach', 'aria-label': options.words.attach }, [icon(clip)]);
    this.node = element('div', { class: 'files' }, [this.#refusal, this.#input]);
    this.button.addEventListener('click', () => this.#input.click());
    this.#input.addEventListener('change', () => {
      this.add([...(this.#input.files ?? [])]);
      // The same file may be chosen again.
      this.#input.value = '';
    });
  }

  get isEmpty(): boolean {
    return this.#chosen.length === 0;
  }

  /** Whether one is still on its way. */
  get isWaiting(): boolean {
    return this.#chosen.some(({ kept }) => kept === null);
  }

  /** Sends the files to the service. Those that are refused are named, with the reason. */
  add(files: readonly File[]): void {
    if (files.length === 0) return;
    this.#refusal.textContent = '';
    for (const file of files) {
      const reason = this.#findReason(file);
      if (reason === null) this.#send(file);
      else this.#refuse(file.name, reason);
    }
  }

  /** Takes the files of a message that is sent now. */
  take(): KeptFile[] {
    const taken = this.#chosen.map(({ kept }) => kept).filter((kept) => kept !== null);
    this.clear();
    return taken;
  }

  clear(): void {
    for (const chosen of this.#chosen) this.#drop(chosen);
    this.#refusal.textContent = '';
  }

  #findReason({ size }: File): string | null {
    const { tooManyFiles, tooLarge, emptyFile } = this.#options.words;
    if (this.#chosen.length >= FILES_MAX) return tooManyFiles;
    if (size > BYTES_MAX) return tooLarge;
    return size === 0 ? emptyFile : null;
  }

  #send(file: File): void {
    const { words, upload, onChange } = this.#options;
    const remove = element('button', { type: 'button', 'aria-label': `${words.remove}: ${file.name}` }, [icon(cross)]);
    const node = element('span', { class: 'chip', 'aria-busy': 'true' }, [element('bdi', {}, [file.name]), remove]);
    const chosen: Chosen = { node, left: new AbortController(), kept: null };
    this.#chosen.push(chosen);
    this.node.append(node);
    remove.addEventListener('click', () => this.#drop(chosen));
    onChange();
    void upload(file, chosen.left.signal).then(
      (kept) => {
        chosen.kept = kept;
        node.removeAttribute('aria-busy');
        onChange();
      },
      (error: unknown) => {
        if (chosen.left.signal.aborted) return;
        this.#drop(chosen);
        this.#refuse(file.name, describeRefusal(ConciergeError.from(error).code, words));
      },
    );
  }

  #drop(chosen: Chosen): void {
    chosen.left.abort();
    chosen.node.remove();
    this.#chosen = this.#chosen.filter((other) => other !== chosen);
    this.#options.onChange();
  }

  #refuse(name: string, reason: string): void {
    this.#refusal.append(element('div', { dir: 'auto' }, [`${name}: ${reason}`]));
  }
}

function describeRefusal(code: string, words: Words): string {
  if (code === 'unsupported_media_type' || code === 'invalid_request') return words.wrongKind;
  if (code === 'too_large') return words.tooLarge;
  return code === 'rate_limited' ? words.tooManyFiles : describeFailure(code, words);
}
