import type { SessionView } from '@concierge/contract';

/** Headings of a conversation that is saved as Markdown, in the reader's language. */
export interface ExportWords {
  readonly you: string;
  readonly agent: string;
  readonly person: string;
}

type Message = SessionView['messages'][number];

/** A conversation as Markdown: who said what, and which files and tools were used. */
export function toMarkdown({ title, createdAt, messages }: SessionView, words: ExportWords): string {
  const parts = messages.map((message) => describe(message, words)).filter((part) => part !== '');
  return `${[`# ${title.replaceAll(/\s+/gu, ' ')}`, createdAt, ...parts].join('\n\n')}\n`;
}

function describe(message: Message, words: ExportWords): string {
  switch (message.role) {
    case 'user': {
      const files = (message.attachments ?? []).map(({ name }) => `- ${name}`).join('\n');
      return [`## ${words.you}`, message.text, files].filter((part) => part !== '').join('\n\n');
    }
    case 'assistant': {
      if (message.text === '') return '';
      return `## ${message.by === undefined ? words.agent : words.person}\n\n${message.text}`;
    }
    case 'tool':
      return `> ${message.name}${message.isError ? ' ✗' : ''}`;
  }
}

const NAME_MAX_CHARACTERS = 60;

/** The name of a file that can be saved anywhere. */
export function toFileName(title: string, ending: string): string {
  const words = title.normalize('NFC').split(/[^\p{L}\p{N}]+/u);
  const name = words
    .filter((word) => word !== '')
    .join('-')
    .slice(0, NAME_MAX_CHARACTERS);
  return `${name === '' ? 'conversation' : name}.${ending}`;
}
