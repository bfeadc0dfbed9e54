import { readMarkdown } from './markdown.ts';
import type { SendingRules } from './sending-rules.ts';
import { plainText, type Dialect } from './dialect.ts';
import { isVisible } from '../visible-text.ts';
import { sliceRuns, joinText, type Marks, type RichText } from './rich-text.ts';

/** `(12/34) `: a message has fewer than a hundred parts on any channel. */
const NUMBER_MAX_UNITS = 8;

/** Markdown as the messages that a provider takes, in order; none when nothing of it can be seen. */
export function renderParts(markdown: string, { dialect, isNumbered = false }: Pick<SendingRules, 'dialect' | 'isNumbered'>): Part[] {
  const rich = readMarkdown(markdown);
  const parts = splitIntoParts(rich, dialect);
  if (!isNumbered || parts.length < 2) return parts;
  const shorter = splitIntoParts(rich, { ...dialect, maxLength: dialect.maxLength - NUMBER_MAX_UNITS });
  return shorter.map(({ text, plain }, index) => {
    const number = `(${String(index + 1)}/${String(shorter.length)}) `;
    return { text: number + text, plain: number + plain };
  });
}

/** One message of the provider. */
export interface Part {
  /** In the provider's dialect. */
  readonly text: string;
  /** The same without any formatting, for when the provider refuses it. */
  readonly plain: string;
}

interface Cut {
  /** Where the part ends. */
  readonly end: number;
  /** Where the next one begins: the white space between them is in neither. */
  readonly next: number;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/**
 * Marked text as messages that the provider takes, in order; none for a text without a visible character. Each part is
 * whole in itself: a block of code that had to be cut is fenced in both parts. Cut is where it hurts least: between
 * paragraphs, lines, words, and last of all what people see as characters.
 */
function splitIntoParts(rich: RichText, dialect: Dialect): Part[] {
  const splitter = new Splitter(rich, dialect);
  return splitter.parts();
}

class Splitter {
  readonly #rich: RichText;
  readonly #dialect: Dialect;
  readonly #text: string;

  constructor(rich: RichText, dialect: Dialect) {
    this.#dialect = dialect;
    this.#text = joinText(rich);
    this.#rich = rich;
  }

  parts(): Part[] {
    const parts: Part[] = [];
    let from = 0;
    while (from < this.#text.length) {
      const { end, next } = this.#cutAfter(from);
      const part = trimEnds(sliceRuns(this.#rich, from, end));
      if (isVisible(joinText(part))) parts.push({ text: this.#dialect.render(part), plain: plainText(part) });
      from = next;
    }
    return parts;
  }

  #cutAfter(from: number): Cut {
    const furthest = this.#furthest(from);
    if (furthest === this.#text.length) return { end: furthest, next: furthest };
    return this.#atLineEnd(from, furthest) ?? this.#atSpace(from, furthest) ?? this.#atGrapheme(from, furthest);
  }

  /** The last offset up to which all fits, by halving: what a provider counts grows with the text. */
  #furthest(from: number): number {
    const { maxLength } = this.#dialect;
    // A unit of text costs one of the provider's at least.
    let tooFar = Math.min(this.#text.length, from + maxLength) + 1;
    // One character always goes: a limit that even that does not meet would otherwise never be left behind.
    let fits = from + 1;
    while (tooFar - fits > 1) {
      const middle = Math.floor((fits + tooFar) / 2);
      if (this.#fits(from, middle)) fits = middle;
      else tooFar = middle;
    }
    return fits;
  }

  /** Its plain form must fit as well, or a part that was refused could not be sent again without formatting. */
  #fits(from: number, to: number): boolean {
    const part = trimEnds(sliceRuns(this.#rich, from, to));
    const { lengthOf, maxLength } = this.#dialect;
    return lengthOf(part) <= maxLength && lengthOf([{ text: plainText(part), marks: {} }]) <= maxLength;
  }

  /** Between paragraphs, else between lines, as long as the part is at least half full. */
  #atLineEnd(from: number, furthest: number): Cut | undefined {
    const half = from + (furthest - from) / 2;
    const paragraph = this.#lastBefore('\n\n', furthest, (at) => this.#marksAt(at).pre === undefined);
    const line = paragraph > half ? paragraph : this.#lastBefore('\n', furthest, () => true);
    if (line <= half) return undefined;
    if (this.#marksAt(line).pre !== undefined) return { end: line, next: line + 1 };
    return { end: line, next: line + (/^\n+/u.exec(this.#text.slice(line))?.[0].length ?? 0) };
  }

  #atSpace(from: number, furthest: number): Cut | undefined {
    const space = this.#lastSpace(from, furthest);
    if (space === undefined) return undefined;
    if (this.#marksAt(space).pre !== undefined) return { end: space, next: space };
    return { end: space, next: space + (/^\s+/u.exec(this.#text.slice(space))?.[0].length ?? 0) };
  }

  #lastSpace(from: number, furthest: number): number | undefined {
    for (let at = furthest; at > from; at -= 1) {
      if (/\s/u.test(this.#text.charAt(at)) && !this.#isInLink(at)) return at;
    }
    return undefined;
  }

  #atGrapheme(from: number, furthest: number): Cut {
    // With the whole code point behind the cut: whether it belongs to what is before it cannot be seen of half of it.
    const segments = graphemes.segment(this.#text.slice(from, furthest + 2));
    const start = segments.containing(furthest - from)?.index ?? 0;
    const end = start > 0 ? from + start : wholePair(this.#text, from, furthest);
    return { end, next: end };
  }

  #lastBefore(sign: string, furthest: number, isGood: (at: number) => boolean): number {
    let at = this.#text.lastIndexOf(sign, furthest);
    while (at > 0 && !isGood(at)) at = this.#text.lastIndexOf(sign, at - 1);
    return at;
  }

  #isInLink(at: number): boolean {
    const link = this.#marksAt(at).link;
    return link !== undefined && this.#marksAt(at - 1).link === link;
  }

  #marksAt(offset: number): Marks {
    return sliceRuns(this.#rich, offset, offset + 1)[0]?.marks ?? {};
  }
}

/** For a character that is longer than a whole message may be. */
function wholePair(text: string, from: number, end: number): number {
  const isInPair = /[\uD800-\uDBFF]/u.test(text.charAt(end - 1)) && /[\uDC00-\uDFFF]/u.test(text.charAt(end));
  if (!isInPair) return end;
  return end - 1 > from ? end - 1 : end + 1;
}

/** Providers trim; what is sent is what was counted. */
function trimEnds(rich: RichText): RichText {
  const text = joinText(rich);
  const end = text.trimEnd().length;
  const start = rich[0]?.marks.pre === undefined ? text.length - text.trimStart().length : 0;
  return sliceRuns(rich, Math.min(start, end), end);
}
