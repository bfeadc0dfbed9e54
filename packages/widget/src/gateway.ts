import { ConciergeError, readVisitorEvent, type StreamPosition, type TurnSource } from '@concierge/client';
import type { VisitorEvent, WidgetAppearance, WidgetConversation, WidgetDisplay, WidgetLanguage, WidgetMessage } from '@concierge/contract';

/** The visitor: one of the two. */
export type Who = { readonly kind: 'visitor'; readonly secret: string } | { readonly kind: 'token'; readonly token: string };

export interface Look {
  readonly appearance: WidgetAppearance;
  readonly display: WidgetDisplay;
  readonly requireSenderToken: boolean;
  /** When staff answers, in ms since 1970; null: at all times. */
  readonly openings: readonly { readonly fromMs: number; readonly untilMs: number }[] | null;
}

/** A file at the service, which a message may name. */
export interface KeptFile {
  readonly id: string;
  readonly name: string;
}

/** A message as it is sent. */
interface Written {
  readonly key: string;
  readonly text: string;
  readonly files: readonly KeptFile[];
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
  turn(who: () => Who, message: Written): TurnSource<VisitorEvent> {
    return {
      open: async ({ turnId, after }: StreamPosition, signal) => {
        if (turnId === null) return this.#send(who(), message, signal);
        const headers = { ...identify(who()), ...(after !== null && { 'Last-Event-ID': after }) };
        return this.#ask(`widget/turns/${turnId}/events`, { headers, signal });
      },
      read: readVisitorEvent,
    };
  }

  /** Keeps a file for a message. */
  async upload(who: Who, file: File, signal: AbortSignal): Promise<KeptFile> {
    const body = new FormData();
    body.set('file', file);
    const response = await this.#ask('widget/uploads', { method: 'POST', headers: identify(who), body, signal });
    const kept = readFile(await response.json());
    if (kept === null) throw new ConciergeError('this is no answer to a file', { status: 502, code: 'internal_error' });
    return kept;
  }

  async cancel(who: Who, turnId: string): Promise<void> {
    await this.#ask(`widget/turns/${turnId}/cancel`, { method: 'POST', headers: identify(who) });
  }

  async #send(who: Who, { key, text, files }: Written, signal: AbortSignal): Promise<Response> {
    const headers = { ...identify(who), 'Content-Type': 'application/json', 'Idempotency-Key': key };
    // A gateway of an earlier version knows no attachments.
    const attachments = files.length === 0 ? {} : { attachments: files.map(({ id }) => id) };
    const body = JSON.stringify({ message: text, ...attachments });
    return this.#ask('widget/messages', { method: 'POST', headers, body, signal });
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
  const { appearance, display, requireSenderToken, openings } = readFields(value);
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
    openings: Array.isArray(openings) ? openings.map((one) => readOpening(one)) : null,
  };
}

function readOpening(value: unknown): { fromMs: number; untilMs: number } {
  const { from, until } = readFields(value);
  return { fromMs: Date.parse(readText(from)), untilMs: Date.parse(readText(until)) };
}

/** A gateway of an earlier version names none. */
function readDisplay(value: unknown): WidgetDisplay {
  const { theme, offsetSide, offsetBottom, zIndex, launcher, files, texts } = readFields(value);
  const own = readFields(texts);
  return {
    theme: theme === 'light' || theme === 'dark' ? theme : 'auto',
    offsetSide: readCount(offsetSide, 20),
    offsetBottom: readCount(offsetBottom, 20),
    zIndex: readCount(zIndex, 2_147_483_000),
    launcher: launcher === 'hidden' ? 'hidden' : 'shown',
    files: files === 'allowed' ? 'allowed' : 'refused',
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
  const { id, turnId, from, text, at, files } = readFields(value);
  const speaker = from === 'visitor' || from === 'person' ? from : 'agent';
  const names = Array.isArray(files) ? files.map((name) => readText(name)) : [];
  return { id: readText(id), turnId: readText(turnId), from: speaker, text: readText(text), at: readText(at), files: names };
}

/** Null for anything else. */
export function readFile(value: unknown): KeptFile | null {
  const { id, name } = readFields(value);
  return typeof id === 'string' && typeof name === 'string' ? { id, name } : null;
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
