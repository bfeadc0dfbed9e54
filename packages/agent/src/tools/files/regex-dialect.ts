/** What `\w` stands for, by Unicode, as the inside of a class. */
export const WORD = String.raw`\p{L}\p{M}\p{Nd}\p{Pc}`;

const SPACE = String.raw`\s\v\x{85}\p{Z}`;
const outside: Readonly<Record<string, string>> = {
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
  s: `[${SPACE}]`,
  S: `[^${SPACE}]`,
};
const inside: Readonly<Record<string, string>> = { w: WORD, d: String.raw`\p{Nd}`, s: SPACE };

/**
 * An expression of ripgrep's dialect for RE2, whose `\w`, `\d` and `\s` know ASCII only: "Straße" is one word here. `\b` stays as it is;
 * nothing in RE2 could take its place.
 */
export function toRe2(source: string): string {
  let isInClass = false;
  return source.replaceAll(/\\[pP](?:\{[^}]*\}|.)|\\.|\[:\^?\w+:\]|[[\]]/gsu, (token: string) => {
    if (token === '[' || token === ']') isInClass = token === '[';
    if (token.length !== 2 || !token.startsWith('\\')) return token;
    return (isInClass ? inside : outside)[token.charAt(1)] ?? token;
  });
}

/** ripgrep's smart case: letters of escapes such as `\S` or `\pL` do not count. */
export function hasCapital(text: string, isRegex: boolean): boolean {
  const literal = isRegex ? text.replaceAll(/\\[pP](?:\{[^}]*\}|.)|\\x\{?[\dA-Fa-f]+\}?|\\./gsu, '') : text;
  return /\p{Lu}/u.test(literal);
}
