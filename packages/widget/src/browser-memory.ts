import { randomKey } from '@concierge/client';
import { readFields, readText, type Who } from './gateway.ts';

/** A message whose answer is not complete yet: enough to show it and to go on after a reload, or in another tab. */
export interface KeptMessage {
  readonly key: string;
  readonly text: string;
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

/**
 * What the browser remembers of one widget. Where it may keep nothing, or has no room, everything lasts as long as the
 * page.
 */
export class BrowserMemory {
  readonly #storage: TextStorage | null;
  readonly #prefix: string;
  readonly #fallback = new Map<string, string>();

  constructor(storage: TextStorage | null, widgetKey: string) {
    this.#storage = storage;
    this.#prefix = `concierge:${widgetKey}:`;
  }

  /** The secret by which the service knows this visitor again. */
  visitorSecret(): string {
    const known = this.#get('visitor');
    if (known !== null && /^[A-Za-z0-9_-]{32,128}$/u.test(known)) return known;
    const made = randomKey(SECRET_BYTES);
    this.#set('visitor', made);
    return made;
  }

  forgetVisitor(): void {
    this.#remove('visitor');
  }

  kept(who: Who): KeptMessage[] {
    try {
      const read: unknown = JSON.parse(this.#get(storageName(who)) ?? '[]');
      return Array.isArray(read) ? read.map((value) => readKept(value)).filter((message) => message !== null) : [];
    } catch {
      return [];
    }
  }

  keep(who: Who, messages: readonly KeptMessage[]): void {
    const text = messages.length === 0 ? null : JSON.stringify(messages.map(({ key, text, turnId }) => ({ key, text, turnId })));
    // Asked with every piece of an answer, and rarely another one.
    if (text === this.#get(storageName(who))) return;
    if (text === null) this.#remove(storageName(who));
    else this.#set(storageName(who), text);
  }

  /** Null for a visitor who has no conversation yet. */
  seen(who: Who): Seen | null {
    try {
      return readSeen(JSON.parse(this.#get(`seen:${storageName(who)}`) ?? 'null'));
    } catch {
      return null;
    }
  }

  keepSeen(who: Who, seen: Seen): void {
    this.#set(`seen:${storageName(who)}`, JSON.stringify(seen));
  }

  forgetSeen(who: Who): void {
    this.#remove(`seen:${storageName(who)}`);
  }

  /** Whether this storage name belongs to the visitor. */
  isKeptName(name: string | null, who: Who): boolean {
    return name === this.#prefix + storageName(who);
  }

  #get(name: string): string | null {
    const own = this.#fallback.get(name);
    if (own !== undefined) return own;
    try {
      return this.#storage?.getItem(this.#prefix + name) ?? null;
    } catch {
      return null;
    }
  }

  #set(name: string, text: string): void {
    try {
      if (this.#storage === null) throw new TypeError('nothing is kept here');
      this.#storage.setItem(this.#prefix + name, text);
      this.#fallback.delete(name);
    } catch {
      this.#fallback.set(name, text);
    }
  }

  #remove(name: string): void {
    this.#fallback.delete(name);
    try {
      this.#storage?.removeItem(this.#prefix + name);
    } catch {
      // Not allowed: nothing was kept there.
    }
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
  const { key, text, turnId } = readFields(value);
  if (typeof key !== 'string' || typeof text !== 'string') return null;
  return { key, text, turnId: typeof turnId === 'string' ? turnId : null };
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
