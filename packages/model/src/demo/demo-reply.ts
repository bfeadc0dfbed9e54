import { clip } from '@concierge/contract';
import { callsAskedFor, type DemoCall } from './demo-intents.ts';
import type { DemoPrompt, DemoResult, DemoTurn } from './demo-turn.ts';

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
