/** A piece of a note or a conversation that is found and embedded as one. */
export interface Passage {
  /** What the whole is called. */
  readonly title: string;
  /** Headings that lead to the piece, or ''. */
  readonly heading: string;
  readonly text: string;
  /** Where it begins: a line of a note, the number of a message in a conversation. From 1. */
  readonly place: number;
  readonly atMs: number;
}

/**
 * What a model embeds; its hash is what vectors are kept by. Nothing of where the piece lies is in it: a renamed note
 * keeps its vectors.
 */
export function embeddedText({ title, heading, text }: Pick<Passage, 'title' | 'heading' | 'text'>): string {
  return [title, heading, text].filter((part) => part !== '').join('\n');
}

/** The words of a passage of a conversation without their speakers: every passage has those. */
export function withoutSpeakers(text: string): string {
  return text.replaceAll(/^(?:user|assistant): /gmu, '');
}
