import { readFile } from 'node:fs/promises';
import type { WrittenNote } from './other-notes.ts';

/**
 * What stands between a question and its note: other words altogether, other forms, words joined or taken apart, typing
 * errors.
 */
export const questionKinds = ['paraphrase', 'form', 'compound', 'typo'] as const;
export type QuestionKind = (typeof questionKinds)[number];

export interface LabelledQuestion {
  readonly kind: QuestionKind;
  readonly text: string;
  /** Name of the note that answers it. */
  readonly note: string;
  /** Half of the questions, one of each note, the ranking was made with; the others it had never seen. */
  readonly half: 'seen' | 'held out';
}

export interface LabelledNotes {
  readonly notes: readonly WrittenNote[];
  readonly questions: readonly LabelledQuestion[];
}

/** Reads a set: `# name | Title`, the text on one line, then two questions by kind. */
export async function readLabelledNotes(file: string): Promise<LabelledNotes> {
  const blocks = (await readFile(new URL(file, import.meta.url), 'utf8')).split(/^# /mu).slice(1);
  const notes: WrittenNote[] = [];
  const questions: LabelledQuestion[] = [];
  for (const [number, block] of blocks.entries()) {
    const [head = '', text = '', ...asked] = block.trim().split('\n');
    const [name = '', title = ''] = head.split(' | ');
    notes.push({ name, text: `# ${title}\n\n${text}\n` });
    for (const [place, line] of asked.entries()) {
      const kind = questionKinds.find((each) => line.startsWith(`${each}: `));
      if (kind === undefined) throw new Error(`${file}: ${line} is no question`);
      questions.push({ kind, text: line.slice(kind.length + 2), note: name, half: (number + place) % 2 === 0 ? 'seen' : 'held out' });
    }
  }
  return { notes, questions };
}
