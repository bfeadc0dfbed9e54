import { withoutEnding } from '@concierge/contract';

export interface DemoCall {
  readonly tool: string;
  /** JSON text. */
  readonly arguments: string;
}

interface Intent {
  readonly tool: string;
  readonly pattern: RegExp;
  /** From what the pattern's first group caught. */
  readonly input: (caught: string) => Record<string, unknown>;
}

const MAX_CALLS = 4;
/** How much of a message is searched for phrases. */
const WORDS_MAX_CHARACTERS = 2000;

const intents: readonly Intent[] = [
  {
    tool: 'read',
    pattern: /\b(?:read|open|show(?: me)?) (?:the )?(?:file )?[`"']?([\w./-]+\.[a-z]{1,8})\b/iu,
    input: (path) => ({ path }),
  },
  { tool: 'list_files', pattern: /\b(?:list|show|see|which|what) (?:\w+ ){0,6}(files|folder|workspace)\b/iu, input: () => ({}) },
  {
    tool: 'search_files',
    pattern: /\bsearch (?:(?:my|the|all) )?(?:files )?for [`"']?([^`"'\n]{1,200})/iu,
    input: (query) => ({ query: withoutEnding(query, ' .?!') }),
  },
  {
    tool: 'memory_write',
    pattern: /\bremember\b(?:\s+(?:that|this)\b)?[\s:]*([^\s:][^\n]{2,499})/iu,
    input: (text) => ({ text: text.trim() }),
  },
  {
    tool: 'load_skill',
    pattern: /\b(?:load|use) (?:the )?skill [`"']?([a-z0-9-]+)/iu,
    input: (name) => ({ name: name.toLowerCase() }),
  },
  {
    tool: 'load_skill',
    pattern: /\b(?:use|load|follow) (?:the )?[`"']?([a-z0-9-]+)[`"']? skill\b/iu,
    input: (name) => ({ name: name.toLowerCase() }),
  },
  { tool: 'sessions_list', pattern: /\b(?:list|show) (?:\w+ ){0,5}(sessions|conversations)\b/iu, input: () => ({}) },
  { tool: 'status', pattern: /\b(status)\b/iu, input: () => ({}) },
];

/**
 * Which tools the words ask for, in the order of the words: `/tool name {json}` exactly that one (the JSON as written,
 * so that bad arguments can be tried too), otherwise what the phrases above catch. Whether a tool is offered is not
 * looked at.
 */
export function callsAskedFor(words: string): DemoCall[] {
  const explicit = /^\s*\/tool\s+(\w+)\s*([^]*)$/u.exec(words);
  if (explicit !== null) return [{ tool: explicit[1] ?? '', arguments: explicit[2]?.trim() === '' ? '{}' : (explicit[2]?.trim() ?? '{}') }];
  const found = intents.flatMap(({ tool, pattern, input }) => {
    const match = pattern.exec(words.slice(0, WORDS_MAX_CHARACTERS));
    return match === null ? [] : [{ tool, arguments: JSON.stringify(input(match[1] ?? '')), at: match.index }];
  });
  const firstOfEach = found.filter((call, index) => found.findIndex((other) => other.tool === call.tool) === index);
  return firstOfEach
    .toSorted((left, right) => left.at - right.at)
    .slice(0, MAX_CALLS)
    .map(({ tool, arguments: text }) => ({ tool, arguments: text }));
}
