import type { WidgetAppearance, WidgetMessage } from '@concierge/contract';
import type { Conversation, Entry } from './conversation.ts';
import { element, icon } from './dom.ts';
import { renderMarkdown } from './markdown.ts';
import { cross, Preview } from './preview.ts';
import { buildStyles } from './styles.ts';

const bubble = 'M21 12a8 8 0 0 1-8 8H4l2-3a8 8 0 1 1 15-5z';

export interface PanelEvents {
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
  readonly onRetry: (key: string) => void;
  readonly onOpenChange: (isOpen: boolean) => void;
  /** What stands in the field now. */
  readonly onWrite: (text: string) => void;
  /** The preview of this message was put away. */
  readonly onDismiss: (messageId: string) => void;
}

/** A message as it stands in the panel, and what it was made of. */
interface Drawn {
  readonly node: HTMLElement;
  readonly text: string;
  readonly state: Entry['state'];
}

const speakers: Readonly<Record<Entry['from'], string>> = { visitor: 'You', agent: 'Assistant', person: 'Team' };

/** The button and the panel. It draws what it is given and reports what the visitor does; it calls no service. */
export class Panel {
  /** A distinct element name, so that a page's rules for its own elements do not match it. */
  readonly #host = document.createElement('concierge-widget');
  readonly #launcher: HTMLButtonElement;
  readonly #panel: HTMLElement;
  readonly #log = element('div', { class: 'log', role: 'log', 'aria-live': 'polite', tabindex: '0' });
  readonly #note = element('div', { class: 'note', role: 'status' });
  readonly #troubles = element('div', { role: 'alert' });
  readonly #input = element('textarea', { rows: '1', 'aria-label': 'Message', placeholder: 'Write a message', enterkeyhint: 'send' });
  readonly #send = element('button', { type: 'submit' }, ['Send']);
  readonly #stop = element('button', { type: 'button', class: 'stop' }, ['Stop']);
  readonly #unread = element('span', { class: 'unread', 'aria-hidden': 'true' });
  readonly #preview = new Preview(speakers, 'Dismiss');
  readonly #title: string;
  readonly #greeting: string;
  readonly #events: PanelEvents;
  readonly #drawn = new Map<string, Drawn>();
  #maySend = true;

  constructor(appearance: WidgetAppearance, events: PanelEvents) {
    this.#events = events;
    this.#greeting = appearance.greeting;
    const { title } = appearance;
    this.#title = title;
    this.#launcher = element('button', { class: 'launcher', type: 'button', 'aria-label': title, 'aria-expanded': 'false' }, [
      icon(bubble),
      this.#unread,
    ]);
    this.#unread.hidden = true;
    this.#panel = element('section', { class: 'panel', role: 'dialog', 'aria-label': title, hidden: '' }, this.#parts(title));
    const root = this.#host.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    // Not a style element: a page's content security policy may forbid those.
    sheet.replaceSync(buildStyles(appearance));
    root.adoptedStyleSheets = [sheet];
    root.append(this.#panel, this.#launcher, this.#preview.node);
    this.#listen();
    document.body.append(this.#host);
  }

  get isOpen(): boolean {
    return !this.#panel.hidden;
  }

  open(takesFocus = true): void {
    if (this.isOpen) return;
    this.#setOpen(true);
    this.#fit();
    this.#scrollDown();
    if (takesFocus) this.#input.focus();
  }

  close(): void {
    if (!this.isOpen) return;
    this.#setOpen(false);
    this.#launcher.focus();
  }

  get hasFocus(): boolean {
    return document.activeElement === this.#host;
  }

  remove(): void {
    this.#host.remove();
  }

  /** Puts a text that was written earlier into the field. */
  write(text: string): void {
    this.#input.value = text;
    this.#fit();
  }

  /** How many messages wait behind the button, and the one whose first words stand beside it. */
  showUnread(count: number, last: WidgetMessage | null): void {
    this.#preview.show(this.isOpen ? null : last);
    const label = count === 0 ? this.#title : `${this.#title}, ${count === 1 ? '1 new message' : `${String(count)} new messages`}`;
    if (this.#launcher.getAttribute('aria-label') === label) return;
    this.#launcher.setAttribute('aria-label', label);
    this.#unread.textContent = count > 9 ? '9+' : String(count);
    this.#unread.hidden = count === 0;
  }

  draw(conversation: Conversation): void {
    const { entries, isAnswering, withPerson, problem } = conversation;
    const atEnd = this.#log.scrollHeight - this.#log.scrollTop - this.#log.clientHeight < 40;
    // While it grows, a screen reader would read every piece of it.
    this.#log.setAttribute('aria-busy', String(entries.some(({ state }) => state !== 'still')));
    this.#drawEntries(
      this.#greeting === '' ? entries : [{ id: 'greeting', from: 'agent', text: this.#greeting, state: 'still' }, ...entries],
    );
    this.#note.textContent = withPerson ? 'Someone of our team answers here.' : '';
    this.#note.hidden = !withPerson;
    this.#drawTroubles(conversation, problem);
    this.#stop.hidden = !isAnswering;
    this.#maySend = conversation.maySend;
    this.#send.disabled = !this.#maySend;
    if (atEnd) this.#scrollDown();
  }

  #parts(title: string): HTMLElement[] {
    const close = element('button', { type: 'button', 'aria-label': 'Close' }, [icon(cross)]);
    close.addEventListener('click', () => this.close());
    const form = element('form', {}, [this.#input, this.#stop, this.#send]);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    return [element('header', {}, [element('h2', {}, [title]), close]), this.#log, this.#note, this.#troubles, form];
  }

  #listen(): void {
    this.#launcher.addEventListener('click', () => (this.isOpen ? this.close() : this.open()));
    this.#stop.addEventListener('click', () => this.#events.onStop());
    this.#stop.hidden = true;
    this.#preview.onOpen = () => this.open();
    this.#preview.onDismiss = (messageId) => {
      this.#events.onDismiss(messageId);
      this.#launcher.focus();
    };
    this.#input.addEventListener('input', () => {
      this.#fit();
      this.#events.onWrite(this.#input.value);
    });
    this.#input.addEventListener('keydown', (event) => {
      // Enter that ends the composition of a character is not the end of the message.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#submit();
    });
    this.#panel.addEventListener('keydown', (event) => {
      // What is typed here is not a shortcut of the page.
      event.stopPropagation();
      if (event.key === 'Escape') this.close();
    });
  }

  #submit(): void {
    const text = this.#input.value.trim();
    if (text === '' || !this.#maySend) return;
    this.write('');
    this.#events.onWrite('');
    this.#events.onSend(text);
    this.#scrollDown();
  }

  #setOpen(isOpen: boolean): void {
    this.#panel.hidden = !isOpen;
    if (isOpen) this.#preview.show(null);
    this.#launcher.setAttribute('aria-expanded', String(isOpen));
    this.#events.onOpenChange(isOpen);
  }

  #drawEntries(entries: readonly Entry[]): void {
    const ids = new Set(entries.map(({ id }) => id));
    for (const [id, { node }] of this.#drawn) {
      if (ids.has(id)) continue;
      node.remove();
      this.#drawn.delete(id);
    }
    let before: HTMLElement | null = null;
    for (const entry of entries) {
      const node = this.#drawEntry(entry);
      const next: ChildNode | null = before === null ? this.#log.firstChild : before.nextSibling;
      if (next !== node) this.#log.insertBefore(node, next);
      before = node;
    }
  }

  #drawEntry({ id, from, text, state }: Entry): HTMLElement {
    const drawn = this.#drawn.get(id);
    if (drawn?.text === text && drawn.state === state) return drawn.node;
    const node = drawn?.node ?? element('div', { class: 'message', 'data-from': from });
    node.dataset['state'] = state;
    const who = element('span', { class: 'who' }, [speakers[from]]);
    if (state === 'typing') node.replaceChildren(who, dots());
    else if (from === 'visitor') node.replaceChildren(text);
    else node.replaceChildren(who, ...renderMarkdown(text));
    this.#drawn.set(id, { node, text, state });
    return node;
  }

  #drawTroubles({ troubles }: Conversation, problem: string | null): void {
    const shown = troubles.map(({ key, words }) => {
      const again = element('button', { type: 'button' }, ['Try again']);
      again.addEventListener('click', () => this.#events.onRetry(key));
      return element('div', { class: 'trouble' }, [element('span', {}, [words]), again]);
    });
    if (problem !== null && shown.length === 0) shown.push(element('div', { class: 'trouble' }, [element('span', {}, [problem])]));
    const text = shown.map((node) => node.textContent).join('\n');
    // The same alert again would be read again.
    if (text !== [...this.#troubles.children].map((node) => node.textContent).join('\n')) this.#troubles.replaceChildren(...shown);
  }

  #fit(): void {
    this.#input.style.height = 'auto';
    this.#input.style.height = `${String(Math.min(this.#input.scrollHeight + 2, 140))}px`;
  }

  #scrollDown(): void {
    this.#log.scrollTop = this.#log.scrollHeight;
  }
}

function dots(): HTMLElement {
  return element('span', { class: 'dots', role: 'img', 'aria-label': 'is writing' }, [element('i'), element('i'), element('i')]);
}
