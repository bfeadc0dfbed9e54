import type { ErasureTraces } from '@concierge/contract';

const addressMinCharacters = 6;
const digitsMin = 7;
const nameMinCharacters = 3;

/**
 * What a text names a contact by. An id, an address and a name of several words name one contact; a first name, or an
 * address without a digit or `@`, may be a word or another person.
 */
export class Literals {
  readonly #own: readonly string[];
  readonly #perhaps: readonly string[];
  readonly #digits: readonly string[];

  constructor({ senders, names, sessionIds }: Pick<ErasureTraces, 'senders' | 'names' | 'sessionIds'>) {
    const isAddress = (sender: string): boolean => sender.length >= addressMinCharacters && /[\d@]/u.test(sender);
    const isWholeName = (name: string): boolean => /\S\s+\S/u.test(name);
    this.#own = [...senders.filter(isAddress), ...names.filter(isWholeName), ...sessionIds].map(fold);
    const others = [...senders.filter((sender) => !isAddress(sender)), ...names.filter((name) => !isWholeName(name))];
    this.#perhaps = others.filter((text) => text.length >= nameMinCharacters).map(fold);
    this.#digits = senders.filter((sender) => /^\+?\d+$/u.test(sender) && sender.length >= digitsMin).map(readDigits);
  }

  /** The text names this contact alone. A phone number is found however it is grouped. */
  isNamedIn(text: string): boolean {
    const folded = fold(text);
    if (this.#own.some((literal) => isWordIn(folded, literal))) return true;
    if (this.#digits.length === 0) return false;
    const digits = text.replaceAll(/(?<=\d)[\s()./-]+(?=[\d(])/gu, '');
    return this.#digits.some((number) => digits.includes(number));
  }

  /** As `isNamedIn`, or a person of that name. */
  mayBeNamedIn(text: string): boolean {
    if (this.isNamedIn(text)) return true;
    const folded = fold(text);
    return this.#perhaps.some((literal) => isWordIn(folded, literal));
  }
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

function readDigits(text: string): string {
  return text.replaceAll(/\D/gu, '');
}

/** Not as a part of a longer word. */
function isWordIn(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    const [before, after] = [text.slice(Math.max(0, at - 1), at), text.slice(at + word.length, at + word.length + 1)];
    if (!/[\p{L}\p{N}]/u.test(before) && !/[\p{L}\p{N}]/u.test(after)) return true;
  }
  return false;
}

/** A heading, an entry of a list with its further lines, or a paragraph. */
export function splitEntries(text: string): string[] {
  const entries: string[] = [];
  let isOpen = false;
  for (const line of text.split('\n')) {
    const begins = /^(?:#|[-*+] |\d+[.)] )/u.test(line);
    if (isOpen && !begins && line.trim() !== '') entries.push(`${entries.pop() ?? ''}\n${line}`);
    else entries.push(line);
    isOpen = line.trim() !== '' && !line.startsWith('#');
  }
  return entries;
}
