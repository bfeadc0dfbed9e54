import { SeededRandom } from '../chaos/load/seeded-random.ts';

/** One note, as it is written below memory/. */
export interface WrittenNote {
  readonly name: string;
  readonly text: string;
}

/** Slots in braces are filled with one of their words; `{n}` with a number. */
export interface Phrases {
  readonly slots: Readonly<Record<string, readonly string[]>>;
  /** One list per topic: a title, then sentences of which each note has some. */
  readonly topics: readonly (readonly string[])[];
}

/**
 * Notes about other things, in the same tone and with many of the same words: what the right note must be found among.
 */
export function otherNotes(phrases: Phrases, { count, seed }: { readonly count: number; readonly seed: number }): WrittenNote[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: count }, (_, number) => {
    const [title = '', ...sentences] = random.pick(phrases.topics);
    const said = sentences.filter(() => random.chance(0.7));
    const body = (said.length === 0 ? sentences : said).map((sentence) => filled(sentence, phrases, random));
    return { name: `other-${String(number)}`, text: `# ${filled(title, phrases, random)}\n\n${body.join(' ')}\n` };
  });
}

function filled(sentence: string, { slots }: Phrases, random: SeededRandom): string {
  return sentence.replaceAll(/\{(?<slot>\w+)\}/gu, (_, slot: string) => {
    return slot === 'n' ? String(random.between(2, 981)) : random.pick(slots[slot] ?? []);
  });
}
