import { beforeLines, spellOutLinks, writeMarkup, type Dialect } from './dialect.ts';
import type { RichText } from './rich-text.ts';

export function plainText(rich: RichText): string {
  return writeMarkup(spellOutLinks(rich), { escape: (text) => text, wrap: { quote: beforeLines('> ') } });
}

/** For channels that show signs as they are. */
export function plainDialect({ maxLength, count }: { readonly maxLength: number; readonly count: (text: string) => number }): Dialect {
  return { maxLength, render: plainText, lengthOf: (rich) => count(plainText(rich)) };
}

export const utf16Units = (text: string): number => text.length;

export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8');
