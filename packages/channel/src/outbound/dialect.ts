import { groupRuns, joinText, type Marks, type RichText } from './rich-text.ts';

/** How a provider writes marked text, and how long a message of it may be. */
export interface Dialect {
  readonly maxLength: number;
  /** Length as the provider counts it, of the message that these runs make. */
  readonly lengthOf: (rich: RichText) => number;
  readonly render: (rich: RichText) => string;
}

/** The channel takes it for the end of a word; no reader sees it. */
export const ZERO_WIDTH_SPACE = '\u200B';

export type MarkName = keyof Marks;

/** From the outside in. Links within emphasis, because Slack shows the signs of what is inside the words of a link. */
const nesting: readonly MarkName[] = ['quote', 'pre', 'bold', 'italic', 'strike', 'link', 'code'];

export interface Markup {
  readonly escape: (text: string) => string;
  /** What is inside is written already. */
  /**
   * Stands between a sign and the word that it touches. Only for channels that show such a sign instead of reading it.
   */
  readonly parting?: string;
  readonly wrap: { readonly [Name in MarkName]?: (inside: string, value: NonNullable<Marks[Name]>) => string };
}

/**
 * Each mark is opened and closed around the runs that have it: whatever was cut out of a text, its markup is balanced.
 */
export function writeMarkup(rich: RichText, markup: Markup): string {
  return writeLevel(rich, markup, 0);
}

function writeLevel(rich: RichText, markup: Markup, level: number): string {
  const name = nesting[level];
  if (name === undefined) return markup.escape(joinText(rich));
  const written = groupRuns(rich, ({ marks }) => marks[name]).map(({ key, runs }) => {
    const inside = writeLevel(runs, markup, level + 1);
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- name and value are of the same mark, which a union of functions cannot express
    const wrap = markup.wrap[name] as ((text: string, value: unknown) => string) | undefined;
    return key === undefined || wrap === undefined ? inside : wrap(inside, key);
  });
  const { parting } = markup;
  return parting === undefined || !signs.has(name) ? written.join('') : joinParted(written, parting);
}

/** Marks that are a sign on either side of the words. */
const signs: ReadonlySet<MarkName> = new Set(['bold', 'italic', 'strike', 'code']);
const endsInWord = /[\p{L}\p{N}\p{M}_]$/u;
const beginsWithWord = /^[\p{L}\p{N}\p{M}_]/u;
const endsInSign = /[*_~`]$/u;
const beginsWithSign = /^[*_~`]/u;

/**
 * The channel wants something else than a letter on the outer side of a sign: `un*believ*able` it shows as that, and
 * CJK text has no spaces.
 */
function joinParted(written: readonly string[], parting: string): string {
  return written.flatMap((piece, index) => (isTouched(written[index - 1] ?? '', piece) ? [parting, piece] : [piece])).join('');
}

/** Looks at the last character alone, which is two units at most: a search for the end goes through all of it. */
function isTouched(before: string, piece: string): boolean {
  const end = before.slice(-2);
  return (endsInWord.test(end) && beginsWithSign.test(piece)) || (endsInSign.test(end) && beginsWithWord.test(piece));
}

/** `*bold*` and its like: on one line, and with no space inside, or the channel shows the signs themselves. */
export function aroundLines(sign: string): (inside: string) => string {
  return (inside) =>
    inside
      .split('\n')
      .map((line) => {
        const bare = line.trim();
        // Given to a function: a dollar sign in it is no reference.
        return bare === '' ? line : line.replace(bare, () => sign + bare + sign);
      })
      .join('\n');
}

export function beforeLines(sign: string): (inside: string) => string {
  return (inside) => inside.replaceAll(/^/gmu, sign);
}

/** Code that contains the sign itself cannot be fenced by it; it is shown without. */
export function fenced(inside: string): string {
  return inside.includes('```') ? inside : `\`\`\`\n${inside}\n\`\`\``;
}

export function ticked(inside: string): string {
  return inside.includes('`') || inside.includes('\n') ? inside : `\`${inside}\``;
}

/** For channels without links behind words: the address follows its words, unless it is its words. */
export function spellOutLinks(rich: RichText): RichText {
  return groupRuns(rich, ({ marks }) => marks.link).flatMap(({ key, runs }) => {
    const bare = runs.map(({ text, marks }) => ({ text, marks: withoutLink(marks) }));
    const last = bare.at(-1);
    if (key === undefined || last === undefined || sameAddress(joinText(bare), key)) return bare;
    return [...bare, { text: ` (${key})`, marks: last.marks }];
  });
}

function withoutLink(marks: Marks): Marks {
  const rest: { -readonly [Name in MarkName]?: Marks[Name] } = { ...marks };
  delete rest.link;
  return rest;
}

function sameAddress(text: string, url: string): boolean {
  const bare = (address: string) => address.replace(/^(?:https?:\/\/|mailto:|tel:)/u, '').replace(/\/$/u, '');
  return bare(text) === bare(url);
}

export function plainText(rich: RichText): string {
  return writeMarkup(spellOutLinks(rich), { escape: (text) => text, wrap: { quote: beforeLines('> ') } });
}

/** For channels that show signs as they are. */
export function plainDialect({ maxLength, count }: { readonly maxLength: number; readonly count: (text: string) => number }): Dialect {
  return { maxLength, render: plainText, lengthOf: (rich) => count(plainText(rich)) };
}

export const utf16Units = (text: string): number => text.length;

export const utf8Bytes = (text: string): number => Buffer.byteLength(text, 'utf8');
