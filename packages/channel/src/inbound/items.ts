import type { IgnoredReason, InboundIgnored, InboundItem, InboundMessage, MediaReference } from '../channel-adapter.ts';
import { isVisible } from '../visible-text.ts';

export function ignored(reason: IgnoredReason, ref: string | null = null): InboundIgnored {
  return { kind: 'ignored', reason, ref };
}

/** A field that a provider leaves out is undefined; in our items it is null. */
export function orNull<Value>(value: Value | undefined): Value | null {
  return value === undefined ? null : value;
}

/** null when there is nothing to read in it. */
export function textOrNull(text: string | undefined): string | null {
  return text === undefined || !isVisible(text) ? null : text;
}

/** The message, or why there is nothing to answer in it. */
export function messageOrEmpty(message: InboundMessage): InboundMessage | InboundIgnored {
  const { text, media, location, cards, order } = message;
  const isEmpty = text === null && media.length === 0 && location === undefined && cards === undefined && order === undefined;
  return isEmpty ? ignored('empty', message.messageRef) : message;
}

/** One body may hold the same message twice. */
export function withoutDuplicates(items: readonly InboundItem[]): InboundItem[] {
  const seen = new Set<string>();
  return items.map((item) => {
    if (item.kind !== 'message') return item;
    if (seen.has(item.providerMessageId)) return ignored('duplicate', item.messageRef);
    seen.add(item.providerMessageId);
    return item;
  });
}

const nothingKnown = { id: null, url: null, mediaType: null, fileName: null, bytes: null, sha256: null };

export function media(known: Pick<MediaReference, 'kind'> & Partial<MediaReference>): MediaReference {
  return { ...nothingKnown, ...known };
}

/** Many of the providers' events are distinguished by which of their fields is there. */
export function eventName(event: object, besides: readonly string[]): string | null {
  return Object.keys(event).find((name) => !besides.includes(name)) ?? null;
}
