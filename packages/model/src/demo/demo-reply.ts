import { clip, withoutEnding, withoutSpans } from '@concierge/contract';
import { lastAsked, readMessageText, type CompletionMessage, type CompletionRequest } from './completion.ts';

export interface DemoReply {
  readonly text: string;
  readonly calls: readonly DemoCall[];
}

const MARK = '**Demo model:**';
const SHOWN_LINES = 14;
const SHOWN_CHARACTERS = 1500;

const setup = `To talk to a real model, put a provider into \`providers.json\` in the data directory and restart:

\`\`\`json
{
  "default": "openai/gpt-5-mini",
  "providers": {
    "openai": {
      "baseUrl": "https://api.openai.com/v1",
      "apiKeyEnv": "OPENAI_API_KEY",
      "models": { "gpt-5-mini": { "contextWindow": 272000, "maxOutputTokens": 32000 } }
    }
  }
}
\`\`\`

\`apiKeyEnv\` names the environment variable with the key; any OpenAI-compatible address will do.`;

/** What the demo model answers. Every text states that it is a demonstration. */
export function demoReply(turn: DemoTurn): DemoReply {
  if (turn.results.length > 0) return { text: afterTools(turn), calls: [] };
  const asked = callsAskedFor(turn.words);
  const calls = asked.filter((call) => turn.offered.has(call.tool));
  if (calls.length > 0) return { text: `${MARK} I will call ${listed(calls.map((call) => code(call.tool)))}.\n\n`, calls };
  if (asked.length > 0) return { text: notOffered(asked, turn), calls: [] };
  if (turn.isFirst || asksWhatItCan(turn.words)) return { text: introduction(turn), calls: [] };
  return { text: echo(turn), calls: [] };
}

function afterTools(turn: DemoTurn): string {
  const results = turn.results.map(describeResult).join('\n\n');
  const more = asksWhatItCan(turn.words)
    ? `\n\n${abilities(turn)}\n\n${setup}`
    : `\n\nA real model would now use this to answer: “${clip(turn.words, 200)}”`;
  return `${MARK} here is what came back.\n\n${results}${more}`;
}

function describeResult({ tool, output }: DemoResult): string {
  const lines = output.split('\n');
  const shown = clip(lines.slice(0, SHOWN_LINES).join('\n'), SHOWN_CHARACTERS).replaceAll('```', "'''");
  const rest = lines.length > SHOWN_LINES ? `\n… and ${String(lines.length - SHOWN_LINES)} more lines` : '';
  return `${code(tool)} answered:\n\n\`\`\`text\n${shown}${rest}\n\`\`\``;
}

function notOffered(asked: readonly DemoCall[], turn: DemoTurn): string {
  const names = listed(asked.map((call) => code(call.tool)));
  return `${MARK} you asked for ${names}, but this agent is not offered ${asked.length === 1 ? 'that tool' : 'those tools'}. It has: ${toolList(turn)}.`;
}

function introduction(turn: DemoTurn): string {
  const self = turn.prompt.name === undefined ? 'Hello!' : `Hello, I am standing in for **${turn.prompt.name}**.`;
  return `${MARK} ${self} No language model is configured, so these are canned replies over the real path: queue, worker, tools and stream.\n\n${abilities(turn)}\n\n${setup}`;
}

function abilities(turn: DemoTurn): string {
  const tries = [
    ['list_files', '“Show me my files”'],
    ['read', '“read IDENTITY.md”'],
    ['search_files', '“search for opening hours”'],
    ['memory_write', '“remember that I prefer short answers”'],
    ['load_skill', `“use the ${turn.prompt.skills[0]?.name ?? 'some'} skill”`],
    ['status', '“status”'],
  ] as const;
  const lines = tries.filter(([tool]) => turn.offered.has(tool)).map(([tool, words]) => `- ${words} calls ${code(tool)}`);
  const any = turn.offered.size > 0 ? ['- `/tool name {"json": "arguments"}` calls any tool of this agent'] : [];
  return `What I can show you:\n\n${[...lines, ...any, ...promptLines(turn.prompt)].join('\n')}`;
}

function promptLines({ sections, skills }: DemoPrompt): string[] {
  const read = sections.length > 0 ? [`- My prompt was built from: ${sections.join(', ')}`] : [];
  const known = skills.map(({ name, description }) => `- Skill ${code(name)}: ${clip(description, 120)}`);
  return [...read, ...known];
}

function echo(turn: DemoTurn): string {
  const attached = turn.attachments.length > 0 ? ` with ${listed(turn.attachments.map(code))} attached` : '';
  const heard = turn.words === '' ? 'your message' : `“${clip(turn.words, 300)}”`;
  return `${MARK} I received ${heard}${attached}. I only know a few phrases (“What can you do?” lists them); with a key in \`providers.json\` a real model answers here.`;
}

function asksWhatItCan(words: string): boolean {
  return /\bwhat can (?:you|i)\b|\bhelp\b|\bwho are you\b/iu.test(words);
}

function toolList(turn: DemoTurn): string {
  return turn.offered.size === 0 ? 'none' : [...turn.offered].map(code).join(', ');
}

function listed(items: readonly string[]): string {
  return items.length <= 1 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1) ?? ''}`;
}

function code(text: string): string {
  return `\`${text.replaceAll('`', '')}\``;
}

interface DemoCall {
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

interface DemoResult {
  readonly tool: string;
  readonly output: string;
}

/** What the demo model understands of a request. */
interface DemoTurn {
  /** The user's own words: without the context block before them and the attachments after. */
  readonly words: string;
  /** Names of the attached files. */
  readonly attachments: readonly string[];
  readonly offered: ReadonlySet<string>;
  /** Results of the tools called since the last user message. */
  readonly results: readonly DemoResult[];
  readonly isFirst: boolean;
  readonly prompt: DemoPrompt;
}

/** What it finds in the system prompt. */
interface DemoPrompt {
  /** The agent's name by its IDENTITY, if one can be made out. */
  readonly name: string | undefined;
  readonly sections: readonly string[];
  readonly skills: readonly { readonly name: string; readonly description: string }[];
}

export function readTurn(request: CompletionRequest): DemoTurn {
  const { messages } = request;
  const lastUser = lastAsked(messages);
  const userMessage = messages[lastUser];
  const sent = userMessage === undefined ? '' : readMessageText(userMessage);
  return {
    words: withoutSpans(sent.replace(/^<context>[^]*?<\/context>\s*/u, ''), '<attachment ', '</attachment>').trim(),
    attachments: [...sent.matchAll(/<attachment id="[^"<>]*" name="([^"<>]*)"/gu)].map(([, name = '']) => name),
    offered: new Set(request.tools?.map((tool) => tool.function.name)),
    results: listResults(messages.slice(lastUser + 1)),
    isFirst: messages.filter((message) => message.role === 'user').length === 1,
    prompt: readPrompt(
      messages
        .filter((message) => message.role === 'system')
        .map(readMessageText)
        .join('\n'),
    ),
  };
}

function listResults(messages: readonly CompletionMessage[]): DemoResult[] {
  const names = new Map(
    messages.flatMap((message) => message.tool_calls ?? []).map((call): [string, string] => [call.id, call.function.name]),
  );
  return messages
    .filter((message) => message.role === 'tool')
    .map((message) => ({ tool: names.get(message.tool_call_id ?? '') ?? 'a tool', output: readMessageText(message) }));
}

function readPrompt(system: string): DemoPrompt {
  const parts = system.split(/^# /mu).slice(1);
  const section = (title: string): string => parts.find((part) => part.startsWith(`${title}\n`)) ?? '';
  const name =
    /^[^\w\r\n\u2028\u2029]*name[^\w\r\n\u2028\u2029:]*:[^\p{L}\d\r\n\u2028\u2029]*([\p{L}\d][\p{L}\d ._-]{0,40})/imu.exec(
      section('Identity'),
    ) ?? /\b[Yy]ou are (?:called )?\**([^\s*,.:;!]{2,30})/u.exec(section('Identity'));
  const skills = [...section('Skills').matchAll(/^- ([a-z0-9-]+): (.+)$/gmu)];
  return {
    name: name?.[1]?.trim(),
    sections: parts.map((part) => part.slice(0, part.indexOf('\n')).trim()).filter((title) => title !== ''),
    skills: skills.map(([, skill = '', description = '']) => ({ name: skill, description })),
  };
}
