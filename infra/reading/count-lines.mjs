// Which lines of a source ran, from what V8 counted.

/**
 * A flag for each character of a source: whether the innermost block around it ran. V8 reports ranges with counts, one
 * for each function and, within those that ran, one for each block with another count than what is around it.
 */
export function flagBytes(length, functions) {
  const flags = new Uint8Array(length);
  const ranges = functions.flatMap(({ ranges: own }) => own);
  // An outer range before the ranges inside of it, which overwrite it.
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges) flags.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return flags;
}

/** Starts of lines that are comments: the formatter gives each line of a block comment its star. */
const comment = /^(?:\/\/|\/\*|\*)/u;

/**
 * The numbers of the lines that ran in the turn and not while the service was idle. A line counts when one of its
 * characters, white space aside, lies in a block that ran in the turn and did not run idle. Blank lines and lines that
 * begin with a comment do not count; nor does what runs when a module is loaded, which is before both.
 */
export function linesRun(source, turn, idle) {
  const [ran, ranIdle] = [flagBytes(source.length, turn), flagBytes(source.length, idle)];
  const numbers = [];
  let offset = 0;
  for (const [index, line] of source.split('\n').entries()) {
    const counts = (character, at) => character.trim() !== '' && ran[offset + at] === 1 && ranIdle[offset + at] === 0;
    if (!comment.test(line.trim()) && line.split('').some((character, at) => counts(character, at))) numbers.push(index + 1);
    offset += line.length + 1;
  }
  return numbers;
}
