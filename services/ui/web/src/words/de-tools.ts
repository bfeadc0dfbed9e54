import type { Words } from './en.ts';

/** Texts of what is tried before customers do, and of the history of files, in German. */
export const toolsDe: Words['tools'] = {
  prompt: {
    title: 'Was das Modell sehen wird',
    about: 'Der Prompt des nächsten Turns, nach Dateien. Tokens sind nach der Länge geschätzt.',
    agent: 'Agent des Prompts',
    session: 'Gespräch',
    newOne: 'Ein neues Gespräch',
    part: 'Teil',
    tokens: 'Tokens',
    change: 'Seit dem letzten Turn',
    changes: { new: 'neu', changed: 'geändert', gone: 'entfernt' },
    sum: (tokens: string) => `Insgesamt etwa ${tokens} Tokens.`,
    lastTurn: 'Der letzte Turn',
    parts: { tools: 'Werkzeuge', history: 'Das bisherige Gespräch', skills: 'Skills, mit Namen' },
  },
};
