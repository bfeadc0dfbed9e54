/** A passage holds one matter where it can; models embed this much without losing it. */
const PASSAGE_TARGET_CHARACTERS = 900;
const PASSAGE_MAX_CHARACTERS = 1400;
/** Length of the end of a passage that the next one of the same section repeats. */
const OVERLAP_MAX_CHARACTERS = 160;
const sentenceEnd = /[.!?…]\s+|[。！？]\s*|\n/gu;

export interface Block {
  readonly text: string;
  readonly line: number;
}

/**
 * Packs blocks into pieces of a passage's size, in order; a block that is longer than one is cut at sentences, words,
 * characters.
 */
export function packBlocks(blocks: readonly Block[]): Block[] {
  const packed: Block[] = [];
  let open: Block | undefined;
  for (const block of blocks.flatMap((each) => cutBlock(each))) {
    if (open !== undefined && open.text.length + block.text.length + 2 <= PASSAGE_TARGET_CHARACTERS) {
      open = { text: `${open.text}\n\n${block.text}`, line: open.line };
      continue;
    }
    if (open !== undefined) packed.push(open);
    const overlap = open === undefined ? '' : cutEnd(open.text);
    open = { text: overlap === '' ? block.text : `${overlap}\n\n${block.text}`, line: block.line };
  }
  if (open !== undefined) packed.push(open);
  return packed;
}

function cutBlock({ text, line }: Block): Block[] {
  const cut: Block[] = [];
  let rest = text;
  let at = line;
  while (rest.length > PASSAGE_MAX_CHARACTERS) {
    const end = cutPlace(rest);
    const piece = rest.slice(0, end);
    cut.push({ text: piece.trim(), line: at });
    at += piece.split('\n').length - 1;
    rest = rest.slice(end);
  }
  return [...cut, { text: rest.trim(), line: at }].filter((block) => block.text !== '');
}

/** After the last sentence or line that fits, else after the last word, else between two characters. */
function cutPlace(text: string): number {
  const fitting = text.slice(0, PASSAGE_TARGET_CHARACTERS);
  const sentence = Math.max(...[...fitting.matchAll(sentenceEnd)].map((end) => end.index + end[0].length), -1);
  if (sentence > PASSAGE_TARGET_CHARACTERS / 3) return sentence;
  const word = fitting.search(/\s\S*$/u) + 1;
  if (word > PASSAGE_TARGET_CHARACTERS / 3) return word;
  return /[\uD800-\uDBFF]/u.test(text.charAt(PASSAGE_TARGET_CHARACTERS - 1)) ? PASSAGE_TARGET_CHARACTERS - 1 : PASSAGE_TARGET_CHARACTERS;
}

/** The last sentence or line of a piece, when it is short enough to be repeated. */
function cutEnd(text: string): string {
  const tail = text.trimEnd().slice(-OVERLAP_MAX_CHARACTERS);
  const ends = [...tail.matchAll(sentenceEnd)].map((end) => end.index + end[0].length);
  const last = ends.findLast((end) => end < tail.length);
  return last === undefined ? '' : tail.slice(last);
}
