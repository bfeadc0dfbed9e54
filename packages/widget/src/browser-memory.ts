import { randomKey } from '@concierge/client';
import { readFields, readFile, readText, type KeptFile, type Who } from './gateway.ts';

/** A message whose answer is not complete yet: enough to show it and to go on after a reload, or in another tab. */
export interface KeptMessage {
  readonly key: string;
  readonly text: string;
  readonly files: readonly KeptFile[];
  readonly turnId: string | null;
}

/**
 * What the visitor has seen of a conversation: its last message, whether staff had it, and when that was, in ms since
 * 1970.
 */
export interface Seen {
  readonly messageId: string;
  readonly withPerson: boolean;
  readonly atMs: number;
}

/** The part of the browser's storage that is used. */
export interface TextStorage {
  getItem(name: string): string | null;
  setItem(name: string, text: string): void;
  removeItem(name: string): void;
}

const SECRET_BYTES = 32;

/** Texts of one widget. Where the browser may keep nothing, or has no room, they last as long as the page. */
class KeptTexts {
  readonly #storage: TextStorage | null;
  readonly prefix: string;
  readonly #fallback = new Map<string, string>();

  constructor(storage: TextStorage | null, prefix: string) {
    this.#storage = storage;
    this.prefix = prefix;
  }

  get(name: string): string | null {
    const own = this.#fallback.get(name);
    if (own !== undefined) return own;
    try {
      return this.#storage?.getItem(this.prefix + name) ?? null;
    } catch {
      return null;
    }
  }

  set(name: string, text: string): void {
    try {
      if (this.#storage === null) throw new TypeError('nothing is kept here');
      this.#storage.setItem(this.prefix + name, text);
      this.#fallback.delete(name);
    } catch {
      this.#fallback.set(name, text);
    }
  }

  remove(name: string): void {
    this.#fallback.delete(name);
    try {
      this.#storage?.removeItem(this.prefix + name);
    } catch {
      // Not allowed: nothing was kept there.
    }
  }
}

/** What the browser remembers of one widget: `lasting` for all of its tabs, `tab` for the pages of one tab. */
export class BrowserMemory {
  readonly #lasting: KeptTexts;
  readonly #tab: KeptTexts;

  constructor({ lasting, tab }: { readonly lasting: TextStorage | null; readonly tab: TextStorage | null }, widgetKey: string) {
    const prefix = `concierge:${widgetKey}:`;
    this.#lasting = new KeptTexts(lasting, prefix);
    this.#tab = new KeptTexts(tab, prefix);
  }

  /** Whether the panel was open on the page before, in this tab. */
  get wasOpen(): boolean {
    return this.#tab.get('open') !== null;
  }

  keepOpen(isOpen: boolean): void {
    if (isOpen) this.#tab.set('open', '1');
    else this.#tab.remove('open');
  }

  /** What the visitor has written and not sent yet. */
  draft(who: Who): string {
    return this.#tab.get(`draft:${storageName(who)}`) ?? '';
  }

  keepDraft(who: Who, text: string): void {
    if (text === '') this.#tab.remove(`draft:${storageName(who)}`);
    else this.#tab.set(`draft:${storageName(who)}`, text);
  }

  /** The message whose preview the visitor has put away; null before there is one. */
  get dismissed(): string | null {
    return this.#tab.get('dismissed');
  }

  dismiss(messageId: string): void {
    this.#tab.set('dismissed', messageId);
  }

  /** The secret by which the service knows this visitor again. */
  visitorSecret(): string {
    const known = this.#lasting.get('visitor');
    if (known !== null && /^[A-Za-z0-9_-]{32,128}$/u.test(known)) return known;
    const made = randomKey(SECRET_BYTES);
    this.#lasting.set('visitor', made);
    return made;
  }

  forgetVisitor(): void {
    this.#lasting.remove('visitor');
  }

  kept(who: Who): KeptMessage[] {
    try {
      const read: unknown = JSON.parse(this.#lasting.get(storageName(who)) ?? '[]');
      return Array.isArray(read) ? read.map((value) => readKept(value)).filter((message) => message !== null) : [];
    } catch {
      return [];
    }
  }

  keep(who: Who, messages: readonly KeptMessage[]): void {
    const text =
      messages.length === 0 ? null : JSON.stringify(messages.map(({ key, text, files, turnId }) => ({ key, text, files, turnId })));
    // Asked with every piece of an answer, and rarely another one.
    if (text === this.#lasting.get(storageName(who))) return;
    if (text === null) this.#lasting.remove(storageName(who));
    else this.#lasting.set(storageName(who), text);
  }

  /** Null for a visitor who has no conversation yet. */
  seen(who: Who): Seen | null {
    try {
      return readSeen(JSON.parse(this.#lasting.get(`seen:${storageName(who)}`) ?? 'null'));
    } catch {
      return null;
    }
  }

  keepSeen(who: Who, seen: Seen): void {
    this.#lasting.set(`seen:${storageName(who)}`, JSON.stringify(seen));
  }

  forgetSeen(who: Who): void {
    this.#lasting.remove(`seen:${storageName(who)}`);
  }

  /** Whether this storage name belongs to the visitor. */
  isKeptName(name: string | null, who: Who): boolean {
    return name === this.#lasting.prefix + storageName(who);
  }
}

/** Storage is separate for each visitor: a token's messages are not shown to the next user of the browser. */
function storageName(who: Who): string {
  return who.kind === 'visitor' ? 'kept' : `kept:${readSubject(who.token)}`;
}

export function readSeen(value: unknown): Seen | null {
  const { messageId, withPerson, atMs } = readFields(value);
  if (typeof messageId !== 'string' || typeof atMs !== 'number') return null;
  return { messageId, withPerson: withPerson === true, atMs };
}

/** A message on its way, as it was kept for after a reload. Null for anything else. */
export function readKept(value: unknown): KeptMessage | null {
  const { key, text, files, turnId } = readFields(value);
  if (typeof key !== 'string' || typeof text !== 'string') return null;
  const kept = Array.isArray(files) ? files.map((file) => readFile(file)).filter((file) => file !== null) : [];
  return { key, text, files: kept, turnId: typeof turnId === 'string' ? turnId : null };
}

/** Reads the subject of a token: only to keep visitors apart in this browser, the service checks the signature. */
export function readSubject(token: string): string {
  try {
    const payload = (token.split('.', 1)[0] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    return readText(readFields(JSON.parse(atob(payload)))['sub']);
  } catch {
    return '';
  }
}
