import { createHash } from 'node:crypto';

const DIMENSIONS = 512;
const PART_CHARACTERS = 3;
const PART_WEIGHT = 0.25;
const SHORT_WORD_CHARACTERS = 3;
const SHORT_WORD_WEIGHT = 0.15;

/** Words that mean the same, in one list each. */
export type Synonyms = readonly (readonly string[])[];

/**
 * A stand-in for an embeddings model, the same vector for the same text everywhere: words and parts of words by their
 * hashes, and words of one list of synonyms as one. It shows what is built on embeddings at work; what a real model
 * would find, it does not show.
 */
export function standInEmbedding(text: string, synonyms: ReadonlyMap<string, string> = new Map()): number[] {
  const vector = Array.from({ length: DIMENSIONS }, () => 0);
  const words = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/\p{M}/gu, '')
    .match(/[\p{L}\p{N}]+/gu);
  for (const word of words ?? []) {
    const weight = word.length <= SHORT_WORD_CHARACTERS && !synonyms.has(word) ? SHORT_WORD_WEIGHT : 1;
    add(vector, `word ${synonyms.get(word) ?? word}`, weight);
    for (const part of splitWord(word)) add(vector, `part ${part}`, weight * PART_WEIGHT);
  }
  if (words === null) vector[0] = 1;
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** Each word with the first one of its list. */
export function mapMeanings(lists: Synonyms): ReadonlyMap<string, string> {
  return new Map(lists.flatMap((list) => list.map((word) => [word, list[0] ?? word] as const)));
}

function splitWord(word: string): string[] {
  const framed = ` ${word} `;
  return Array.from({ length: Math.max(0, framed.length - PART_CHARACTERS + 1) }, (_, start) =>
    framed.slice(start, start + PART_CHARACTERS),
  );
}

function add(vector: number[], feature: string, weight: number): void {
  const digest = createHash('sha256').update(feature).digest();
  const place = digest.readUInt32LE(0) % vector.length;
  vector[place] = (vector[place] ?? 0) + (digest.readUInt8(4) % 2 === 0 ? weight : -weight);
}
