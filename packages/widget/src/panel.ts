import type { WidgetLanguage, WidgetMessage } from '@concierge/contract';
import { Composer, type ComposerEvents } from './composer.ts';
import type { Conversation } from './conversation.ts';
import { cross, element, icon, isWritingInPage } from './dom.ts';
import { FocusTrap } from './focus-trap.ts';
import type { Look } from './gateway.ts';
import { Preview } from './preview.ts';
import { buildStyles } from './styles.ts';
import { Transcript } from './transcript.ts';
import { chooseWords, describeFailure, type Words } from './words.ts';

const bubble = 'M21 12a8 8 0 0 1-8 8H4l2-3a8 8 0 1 1 15-5z';

/** What of a conversation is drawn. */
export type Shown = Pick<Conversation, 'entries' | 'troubles' | 'problem' | 'withPerson' | 'isAnswering' | 'maySend'>;

export interface PanelEvents extends ComposerEvents {
  readonly onRetry: (key: string) => void;
  readonly onOpenChange: (isOpen: boolean) => void;
  /** The preview of this message was put away. */
  readonly onDismiss: (messageId: string) => void;
}

/** The button and the panel. It draws what it is given and reports what the visitor does; it calls no service. */
export class Panel {
  /** A distinct element name, so that a page's rules for its own elements do not match it. */
  readonly #host = document.createElement('concierge-widget');
  readonly #launcher: HTMLButtonElement;
  readonly #panel: HTMLElement;
  readonly #transcript: Transcript;
  readonly #note = element('div', { class: 'note', role: 'status' });
  readonly #troubles = element('div', { role: 'alert' });
  readonly #composer: Composer;
  readonly #unread = element('span', { class: 'unread', 'aria-hidden': 'true', hidden: '' });
  readonly #preview: Preview;
  readonly #trap: FocusTrap;
  readonly #words: Words;
  readonly #openings: Look['openings'];
  readonly #events: PanelEvents;
  /** What had the focus when it was opened: it gets it back. */
  #opener: HTMLElement | null = null;

  constructor(look: Look, language: WidgetLanguage, events: PanelEvents) {
    this.#events = events;
    this.#openings = look.openings;
    this.#words = chooseWords(language, look);
    this.#preview = new Preview(this.#words);
    this.#transcript = new Transcript(this.#words, language);
    this.#composer = new Composer(this.#words, {
      ...events,
      upload: look.display.files === 'allowed' ? events.upload : undefined,
      onSend: (text, files) => {
        events.onSend(text, files);
        this.#transcript.scrollDown();
      },
    });
    const { title } = this.#words;
    this.#launcher = element('button', { class: 'launcher', type: 'button', 'aria-label': title, 'aria-expanded': 'false' }, [
      icon(bubble),
      this.#unread,
    ]);
    this.#launcher.hidden = look.display.launcher === 'hidden';
    const panel = { class: 'panel', role: 'dialog', 'aria-label': title, tabindex: '-1', hidden: '' };
    this.#panel = element('section', panel, this.#parts(title));
    this.#host.lang = language;
    const root = this.#host.attachShadow({ mode: 'open' });
    const sheet = new CSSStyleSheet();
    // Not a style element: a page's content security policy may forbid those.
    sheet.replaceSync(buildStyles(look, language === 'ar' ? 'rtl' : 'ltr'));
    root.adoptedStyleSheets = [sheet];
    root.append(this.#panel, this.#launcher, this.#preview.node);
    this.#trap = new FocusTrap(this.#panel);
    this.#listen();
    document.body.append(this.#host);
  }

  get isOpen(): boolean {
    return !this.#panel.hidden;
  }

  get hasFocus(): boolean {
    return document.activeElement === this.#host;
  }

  open(takesFocus = true): void {
    if (this.isOpen) return;
    this.#opener = takesFocus && document.activeElement instanceof HTMLElement && !this.hasFocus ? document.activeElement : null;
    this.#setOpen(true);
    this.#composer.fit();
    this.#transcript.scrollDown();
    if (takesFocus) this.#composer.focus();
    this.#trap.update();
  }

  close(): void {
    if (!this.isOpen) return;
    this.#setOpen(false);
    // The page has closed it while its visitor writes there.
    if (isWritingInPage()) return;
    (this.#launcher.hidden ? this.#opener : this.#launcher)?.focus();
  }

  remove(): void {
    this.#trap.stop();
    this.#host.remove();
  }

  /** Puts a text that was written earlier into the field. */
  write(text: string): void {
    this.#composer.write(text);
  }

  /** How many messages wait behind the button, and the one whose first words stand beside it. */
  showUnread(count: number, last: WidgetMessage | null): void {
    this.#preview.show(this.isOpen ? null : last);
    const { title, oneNew, manyNew } = this.#words;
    const label = count === 0 ? title : `${title}, ${count === 1 ? oneNew : manyNew.replace('{count}', String(count))}`;
    if (this.#launcher.getAttribute('aria-label') === label) return;
    this.#launcher.setAttribute('aria-label', label);
    this.#unread.textContent = count > 9 ? '9+' : String(count);
    this.#unread.hidden = count === 0;
    dispatchEvent(new CustomEvent('concierge:unread', { detail: count }));
  }

  draw(conversation: Shown): void {
    // A line below the messages takes room from them.
    this.#transcript.keepEnd(() => {
      this.#transcript.draw(conversation.entries);
      this.#note.textContent = conversation.withPerson ? this.#describeTeam() : '';
      this.#note.hidden = !conversation.withPerson;
      this.#drawTroubles(conversation);
      this.#composer.draw(conversation);
    });
  }

  /** That staff answers here, or from when on. */
  #describeTeam(): string {
    const nowMs = Date.now();
    const next = this.#openings?.find(({ untilMs }) => untilMs > nowMs);
    if (next === undefined || next.fromMs <= nowMs) return this.#words.withPerson;
    const format = new Intl.DateTimeFormat(this.#host.lang, { weekday: 'long', hour: 'numeric', minute: '2-digit' });
    return this.#words.away.replace('{time}', format.format(next.fromMs));
  }

  #parts(title: string): HTMLElement[] {
    const close = element('button', { type: 'button', 'aria-label': this.#words.close }, [icon(cross)]);
    close.addEventListener('click', () => this.close());
    const head = element('div', { class: 'head' }, [element('h2', { dir: 'auto' }, [title]), close]);
    return [head, this.#transcript.node, this.#note, this.#troubles, this.#composer.node];
  }

  #listen(): void {
    this.#launcher.addEventListener('click', () => (this.isOpen ? this.close() : this.open()));
    this.#preview.onOpen = () => this.open();
    this.#preview.onDismiss = (messageId) => {
      this.#events.onDismiss(messageId);
      this.#launcher.focus();
    };
    this.#panel.addEventListener('dragover', (event) => event.preventDefault());
    this.#panel.addEventListener('drop', (event) => {
      // Else the browser would leave the page for the file.
      event.preventDefault();
      this.#composer.takeFiles(event.dataTransfer);
    });
    this.#panel.addEventListener('keydown', (event) => {
      // What is typed here is not a shortcut of the page.
      event.stopPropagation();
      if (event.key === 'Escape') this.close();
    });
  }

  #setOpen(isOpen: boolean): void {
    this.#panel.hidden = !isOpen;
    if (isOpen) this.#preview.show(null);
    this.#launcher.setAttribute('aria-expanded', String(isOpen));
    this.#events.onOpenChange(isOpen);
  }

  #drawTroubles({ troubles, problem }: Shown): void {
    const shown = troubles.map(({ key, code }) => {
      const again = element('button', { type: 'button' }, [this.#words.retry]);
      again.addEventListener('click', () => this.#events.onRetry(key));
      return element('div', { class: 'trouble' }, [element('span', {}, [describeFailure(code, this.#words)]), again]);
    });
    if (problem !== null && shown.length === 0)
      shown.push(element('div', { class: 'trouble' }, [element('span', {}, [describeFailure(problem, this.#words)])]));
    const text = shown.map((node) => node.textContent).join('\n');
    // The same alert again would be read again.
    if (text !== [...this.#troubles.children].map((node) => node.textContent).join('\n')) this.#troubles.replaceChildren(...shown);
  }
}
