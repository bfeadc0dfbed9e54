import type { WidgetAppearance, WidgetConversation, WidgetMessage } from '@concierge/contract';

/**
 * Fields of an object of which nothing is known yet. A library of schemas would be larger than the rest of the script.
 */
type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export interface Look {
  readonly appearance: WidgetAppearance;
  readonly requireSenderToken: boolean;
}

export function readLook(value: unknown): Look {
  const { appearance, requireSenderToken } = fieldsOf(value);
  const { title, greeting, colour, position } = fieldsOf(appearance);
  return {
    appearance: {
      title: textOf(title) || 'Chat',
      greeting: textOf(greeting),
      colour: /^#[0-9a-f]{6}$/u.test(textOf(colour)) ? textOf(colour) : '#2457d6',
      position: position === 'left' ? 'left' : 'right',
    },
    requireSenderToken: requireSenderToken === true,
  };
}

export function readConversation(value: unknown): WidgetConversation {
  const { messages, withPerson, askAgainSeconds } = fieldsOf(value);
  return {
    messages: Array.isArray(messages) ? messages.map((message) => readMessage(message)) : [],
    withPerson: withPerson === true,
    askAgainSeconds: typeof askAgainSeconds === 'number' && askAgainSeconds >= 1 ? askAgainSeconds : 60,
  };
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

export function readSeen(value: unknown): Seen | null {
  const { messageId, withPerson, atMs } = fieldsOf(value);
  if (typeof messageId !== 'string' || typeof atMs !== 'number') return null;
  return { messageId, withPerson: withPerson === true, atMs };
}

function readMessage(value: unknown): WidgetMessage {
  const { id, turnId, from, text, at } = fieldsOf(value);
  const speaker = from === 'visitor' || from === 'person' ? from : 'agent';
  return { id: textOf(id), turnId: textOf(turnId), from: speaker, text: textOf(text), at: textOf(at) };
}

/** A message on its way, as it was kept for after a reload. Null for anything else. */
export function readKept(value: unknown): { readonly key: string; readonly text: string; readonly turnId: string | null } | null {
  const { key, text, turnId } = fieldsOf(value);
  if (typeof key !== 'string' || typeof text !== 'string') return null;
  return { key, text, turnId: typeof turnId === 'string' ? turnId : null };
}

/** Reads the subject of a token: only to keep visitors apart in this browser, the service checks the signature. */
export function subjectOf(token: string): string {
  try {
    const payload = (token.split('.', 1)[0] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    return textOf(fieldsOf(JSON.parse(atob(payload)))['sub']);
  } catch {
    return '';
  }
}
