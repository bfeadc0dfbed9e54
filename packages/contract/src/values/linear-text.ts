/*
 * What a regular expression would do in the square of the length of its text: `/x+$/` begins anew at every `x`, and
 * `/<a>.*?<\/a>/` looks for the end of every `<a>` that is not closed.
 */

/** The text without the characters at its end that are among `characters`. */
export function withoutEnding(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** The text without what stands from each `open` to the next `close`, both included. What is not closed stays. */
export function withoutSpans(text: string, open: string, close: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let start = text.indexOf(open); start >= 0; start = text.indexOf(open, from)) {
    const end = text.indexOf(close, start + open.length);
    if (end < 0) break;
    kept.push(text.slice(from, start));
    from = end + close.length;
  }
  return kept.join('') + text.slice(from);
}

/** The text on one line: its lines without the space around them, and without those that are empty. */
export function onOneLine(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}
