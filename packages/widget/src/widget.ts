import { BrowserMemory, readSubject, type TextStorage } from './browser-memory.ts';
import { Conversation } from './conversation.ts';
import { isWritingInPage } from './dom.ts';
import { Gateway, type Look, type Who } from './gateway.ts';
import { Panel } from './panel.ts';
import { chooseLanguage } from './words.ts';

/**
 * The interval while the panel is closed and staff does not have the conversation: a staff answer is still noticed, and
 * a page costs few requests.
 */
const CLOSED_ASK_MS = 300_000;
/** A conversation of which nothing was seen for this long is asked for when the panel is opened, not before. */
const FRESH_MS = 24 * 3_600_000;

export interface WidgetOptions {
  /** Where the script came from. */
  readonly base: string;
  readonly key: string;
  readonly token: string | null;
}

/** The widget of one page: who the visitor is, their conversation, and the panel that shows it once it may be shown. */
export class Widget {
  readonly #gateway: Gateway;
  readonly #memory: BrowserMemory;
  #token: string | null;
  #look: Look | null = null;
  #panel: Panel | null = null;
  #conversation: Conversation | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #drawing = false;
  #wantsOpen: boolean;
  /** Whether it was asked to open on this page. */
  #takesFocus = false;

  constructor({ base, key, token }: WidgetOptions) {
    this.#gateway = new Gateway(base, key);
    this.#memory = new BrowserMemory({ lasting: openStorage('localStorage'), tab: openStorage('sessionStorage') }, key);
    this.#wantsOpen = this.#memory.wasOpen;
    this.#token = token;
  }

  /** Rejects with a ConciergeError when the widget may not be shown on this page. */
  async start(): Promise<void> {
    this.#look = await this.#gateway.look();
    addEventListener('storage', ({ key }) => {
      if (this.#memory.isKeptName(key, this.#who())) this.#conversation?.takeUpKept();
    });
    document.addEventListener('click', (event) => {
      if (!(event.target instanceof Element) || event.target.closest('[data-concierge-open]') === null) return;
      // A link that is a button here leads nowhere.
      event.preventDefault();
      this.open();
    });
    document.addEventListener('visibilitychange', () => this.#watch(true));
    this.#show();
  }

  open(): void {
    this.#wantsOpen = true;
    this.#takesFocus = this.#panel === null;
    this.#panel?.open();
  }

  close(): void {
    this.#wantsOpen = false;
    this.#memory.keepOpen(false);
    this.#panel?.close();
  }

  /** Switches to another visitor, or to a new token of the same one; null: an unknown visitor. */
  setToken(token: string | null): void {
    if (token === this.#token) return;
    const isSame = token !== null && this.#token !== null && readSubject(token) === readSubject(this.#token);
    this.#token = token;
    // What is written but not sent yet stays.
    if (isSame && this.#conversation !== null) this.#watch(true);
    else this.#startOver();
  }

  /** Forgets this visitor: the next message begins a new conversation. */
  reset(): void {
    this.#memory.keep(this.#who(), []);
    this.#memory.keepDraft(this.#who(), '');
    this.#memory.forgetSeen(this.#who());
    this.#memory.forgetVisitor();
    this.#startOver();
  }

  #who(): Who {
    return this.#token === null ? { kind: 'visitor', secret: this.#memory.visitorSecret() } : { kind: 'token', token: this.#token };
  }

  #startOver(): void {
    clearTimeout(this.#timer);
    this.#conversation?.leave();
    this.#conversation = null;
    const wasOpen = this.#panel?.isOpen === true;
    const hadFocus = this.#panel?.hasFocus === true;
    this.#panel?.remove();
    this.#panel = null;
    this.#wantsOpen = wasOpen;
    this.#takesFocus = hadFocus;
    this.#show();
  }

  /** A visitor who must be identified and is not sees no widget. */
  #show(): void {
    if (this.#look === null || (this.#look.requireSenderToken && this.#token === null)) return;
    const conversation = new Conversation({
      gateway: this.#gateway,
      memory: this.#memory,
      who: () => this.#who(),
      onChange: () => {
        this.#draw();
        // How soon to ask again may have changed: staff may have taken over.
        this.#watch(false);
      },
    });
    this.#conversation = conversation;
    this.#panel = new Panel(this.#look, chooseLanguage([document.documentElement.lang, ...navigator.languages]), {
      onSend: (text, files) => conversation.send(text, files),
      upload: async (file, signal) => await this.#gateway.upload(this.#who(), file, signal),
      onStop: () => conversation.stop(),
      onRetry: (key) => conversation.retry(key),
      onOpenChange: (isOpen) => {
        this.#memory.keepOpen(isOpen);
        this.#draw();
        this.#watch(isOpen);
      },
      onWrite: (text) => this.#memory.keepDraft(this.#who(), text),
      onDismiss: (messageId) => this.#memory.dismiss(messageId),
    });
    this.#panel.write(this.#memory.draft(this.#who()));
    this.#draw();
    // Without a conversation there is nothing to ask for before the panel is opened.
    if (this.#memory.kept(this.#who()).length > 0) void conversation.begin();
    else this.#watch(true);
    // A panel that was open on the page before takes no focus from this one, nor one that opens late from a field.
    if (this.#wantsOpen) this.#panel.open(this.#takesFocus && !isWritingInPage());
  }

  /** Once for all changes of one frame. */
  #draw(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    const draw = (): void => {
      this.#drawing = false;
      if (this.#conversation === null || this.#panel === null) return;
      this.#panel.draw(this.#conversation);
      this.#noteUnread(this.#conversation, this.#panel);
    };
    // A page in the background has no frames.
    if (document.visibilityState === 'visible') requestAnimationFrame(draw);
    else setTimeout(draw, 100);
  }

  /** What is shown is seen; what comes while the panel is closed is counted on its button. */
  #noteUnread(conversation: Conversation, panel: Panel): void {
    const { lastMessageId, withPerson } = conversation;
    const seen = this.#memory.seen(this.#who());
    if (lastMessageId === null) return;
    const isShown = panel.isOpen && document.visibilityState === 'visible';
    const messageId = isShown || seen === null ? lastMessageId : seen.messageId;
    if (messageId !== seen?.messageId || withPerson !== seen.withPerson) {
      this.#memory.keepSeen(this.#who(), { messageId, withPerson, atMs: Date.now() });
    }
    const unread = conversation.messagesAfter(messageId);
    const last = unread.at(-1);
    panel.showUnread(unread.length, last === undefined || last.id === this.#memory.dismissed ? null : last);
  }

  /** How soon to ask for staff messages; null: not before the panel is opened. */
  #askAgainMs(conversation: Conversation): number | null {
    if (this.#panel?.isOpen === true || conversation.withPerson) return conversation.askAgainMs;
    const seen = this.#memory.seen(this.#who());
    return seen !== null && Date.now() - seen.atMs < FRESH_MS ? CLOSED_ASK_MS : null;
  }

  /** While the page can be seen, it asks for staff messages; an answer that comes as a stream needs no asking. */
  #watch(askNow: boolean): void {
    clearTimeout(this.#timer);
    const conversation = this.#conversation;
    if (conversation === null || document.visibilityState !== 'visible' || this.#askAgainMs(conversation) === null) return;
    const asking = askNow ? conversation.begin() : Promise.resolve();
    void asking.then(() => {
      clearTimeout(this.#timer);
      const askAgainMs = this.#askAgainMs(conversation);
      if (askAgainMs !== null) this.#timer = setTimeout(() => this.#watch(!conversation.isAnswering), askAgainMs);
    });
  }
}

/** Null where the browser keeps nothing for this page; asking alone may throw. */
function openStorage(name: 'localStorage' | 'sessionStorage'): TextStorage | null {
  try {
    return globalThis[name];
  } catch {
    return null;
  }
}
