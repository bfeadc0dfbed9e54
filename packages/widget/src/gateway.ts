import { ConciergeError, readVisitorEvent, type StreamPosition, type TurnSource } from '@concierge/client';
import type { VisitorEvent, WidgetAppearance, WidgetConversation, WidgetDisplay, WidgetLanguage, WidgetMessage } from '@concierge/contract';

/** The visitor: one of the two. */
export type Who = { readonly kind: 'visitor'; readonly secret: string } | { readonly kind: 'token'; readonly token: string };

export interface Look {
  readonly appearance: WidgetAppearance;
  readonly display: WidgetDisplay;
  readonly requireSenderToken: boolean;
}

/** The service, as far as visitors may use it. It does not store the visitor: each call names them. */
export class Gateway {
  readonly #base: string;
  readonly #key: string;

  /** `base`: the address of the script, beside which the service answers. */
  constructor(base: string, key: string) {
    this.#base = base;
    this.#key = key;
  }

  async look(): Promise<Look> {
    return readLook(await (await this.#ask('widget/settings', {})).json());
  }

  /** Null: nothing has changed since the answer with this tag. */
  async conversation(
    who: Who,
    knownTag: string | null,
  ): Promise<{ readonly tag: string | null; readonly conversation: WidgetConversation } | null> {
    const headers: Record<string, string> = { ...identify(who), ...(knownTag === null ? {} : { 'If-None-Match': knownTag }) };
    const response = await this.#ask('widget/conversation', { headers });
    if (response.status === 304) return null;
    return { tag: response.headers.get('ETag'), conversation: readConversation(await response.json()) };
  }

  /** A message and the answer to it. The same `key` again is the same message, never a second one. */
  turn(who: () => Who, message: { readonly key: string; readonly text: string }): TurnSource<VisitorEvent> {
    return {
      open: async ({ turnId, after }: StreamPosition, signal) => {
        if (turnId === null) return this.#send(who(), message, signal);
        const headers = { ...identify(who()), ...(after !== null && { 'Last-Event-ID': after }) };
        return this.#ask(`widget/turns/${turnId}/events`, { headers, signal });
      },
      read: readVisitorEvent,
    };
  }

  async cancel(who: Who, turnId: string): Promise<void> {
    await this.#ask(`widget/turns/${turnId}/cancel`, { method: 'POST', headers: identify(who) });
  }

  async #send(who: Who, { key, text }: { readonly key: string; readonly text: string }, signal: AbortSignal): Promise<Response> {
    const headers = { ...identify(who), 'Content-Type': 'application/json', 'Idempotency-Key': key };
    return this.#ask('widget/messages', { method: 'POST', headers, body: JSON.stringify({ message: text }), signal });
  }

  /** The key stands in the address, for a browser's preflight request carries nothing else. */
  async #ask(path: string, init: RequestInit): Promise<Response> {
    const url = new URL(path, this.#base);
    url.searchParams.set('key', this.#key);
    const response = await fetch(url, { ...init, mode: 'cors', credentials: 'omit', cache: 'no-store', redirect: 'error' });
    if (response.ok || response.status === 304) return response;
    throw await ConciergeError.fromResponse(response);
  }
}

function identify(who: Who): Record<string, string> {
  return who.kind === 'token' ? { 'X-Widget-Token': who.token } : { 'X-Widget-Visitor': who.secret };
}

export function readLook(value: unknown): Look {
  const { appearance, display, requireSenderToken } = readFields(value);
  const { title, greeting, colour, position } = readFields(appearance);
  return {
    appearance: {
      title: readText(title) || 'Chat',
      greeting: readText(greeting),
      colour: /^#[0-9a-f]{6}$/u.test(readText(colour)) ? readText(colour) : '#2457d6',
      position: position === 'left' ? 'left' : 'right',
    },
    display: readDisplay(display),
    requireSenderToken: requireSenderToken === true,
  };
}

/** A gateway of an earlier version names none. */
function readDisplay(value: unknown): WidgetDisplay {
  const { theme, offsetSide, offsetBottom, zIndex, launcher, texts } = readFields(value);
  const own = readFields(texts);
  return {
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
    offsetSide: readCount(offsetSide, 20),
    offsetBottom: readCount(offsetBottom, 20),
    zIndex: readCount(zIndex, 2_147_483_000),
    launcher: launcher === 'hidden' ? 'hidden' : 'shown',
    texts: Object.fromEntries(languages.map((language) => [language, readTexts(own[language])])),
  };
}

const languages: readonly WidgetLanguage[] = ['en', 'de', 'es', 'fr', 'pt', 'ar'];

function readTexts(value: unknown): WidgetDisplay['texts'][WidgetLanguage] {
  const { title, greeting, placeholder } = readFields(value);
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof greeting === 'string' && { greeting }),
    ...(typeof placeholder === 'string' && { placeholder }),
  };
}

function readCount(value: unknown, otherwise: number): number {
  return Number.isInteger(value) && Number(value) >= 0 ? Number(value) : otherwise;
}

export function readConversation(value: unknown): WidgetConversation {
  const { messages, withPerson, askAgainSeconds } = readFields(value);
  return {
    messages: Array.isArray(messages) ? messages.map((message) => readMessage(message)) : [],
    withPerson: withPerson === true,
    askAgainSeconds: typeof askAgainSeconds === 'number' && askAgainSeconds >= 1 ? askAgainSeconds : 60,
  };
}

function readMessage(value: unknown): WidgetMessage {
  const { id, turnId, from, text, at } = readFields(value);
  const speaker = from === 'visitor' || from === 'person' ? from : 'agent';
  return { id: readText(id), turnId: readText(turnId), from: speaker, text: readText(text), at: readText(at) };
}

/**
 * Fields of an object of which nothing is known yet. A library of schemas would be larger than the rest of the script.
 */
type Fields = Readonly<Record<string, unknown>>;

export function readFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

export function readText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
