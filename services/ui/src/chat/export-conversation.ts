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

/** The name of a file that can be saved anywhere. */
export function toFileName(title: string, ending: string): string {
  const name = title
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{N}]+/gu, '-')
    .replaceAll(/^-+|-+$/gu, '')
    .slice(0, 60);
  return `${name === '' ? 'conversation' : name}.${ending}`;
}
