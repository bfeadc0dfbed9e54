const LETTERS = 32;

/** The words that stand in what is searched, ready to be compared with one that does not. */
export class Vocabulary {
  readonly #words: ReadonlySet<string>;
  readonly #byLength = new Map<number, string[]>();
  readonly #letters = new Map<string, number>();
  readonly #sorted: readonly string[];

  constructor(words: Iterable<string>) {
    this.#words = new Set(words);
    this.#sorted = [...this.#words].toSorted();
    for (const word of this.#sorted) {
      const ofLength = this.#byLength.get(word.length);
      if (ofLength === undefined) this.#byLength.set(word.length, [word]);
      else ofLength.push(word);
      this.#letters.set(word, countLetters(word));
    }
  }

  get size(): number {
    return this.#words.size;
  }

  has(word: string): boolean {
    return this.#words.has(word);
  }

  /** Does a word begin like this? */
  hasBeginning(beginning: string): boolean {
    let low = 0;
    let high = this.#sorted.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < beginning) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low]?.startsWith(beginning) === true;
  }

  /** Longer words that end with this one, in order. */
  endingWith(ending: string, beforeMin: number): string[] {
    return this.#sorted.filter((word) => word.length >= ending.length + beforeMin && word.endsWith(ending));
  }

  /** Words that so many slips may have turned into this one: of about its length, and with nearly its letters. */
  *near(text: string, slipsMax: number): Iterable<string> {
    const letters = countLetters(text);
    for (let length = text.length - slipsMax; length <= text.length + slipsMax; length += 1) {
      for (const word of this.#byLength.get(length) ?? []) {
        if (bitsIn(letters ^ (this.#letters.get(word) ?? 0)) <= 2 * slipsMax) yield word;
      }
    }
  }
}

/** Which letters a word has, as bits: a slip changes two of them at most. */
function countLetters(word: string): number {
  let letters = 0;
  for (let place = 0; place < word.length; place += 1) letters |= 1 << (word.charCodeAt(place) % LETTERS);
  return letters;
}

function bitsIn(value: number): number {
  let rest = value;
  let count = 0;
  for (; rest !== 0; rest &= rest - 1) count += 1;
  return count;
}
