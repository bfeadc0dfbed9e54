import type { ModelTool } from '@concierge/model';
import type { Argument } from './argument-schema.ts';

const SUMMARY_MAX_CHARACTERS = 90;

const exits = 'Exit codes: 0 done, 1 the tool reports an error, 2 wrong command line, 3 not connected, 4 too many calls in this turn.';

/** `concierge --help`. */
export function listHelp(tools: readonly ModelTool[]): string {
  const width = Math.max(...tools.map(({ name }) => name.length));
  return [
    'concierge calls the tools of the agent whose turn this is, with the rights of that agent.',
    '',
    'Usage: concierge <tool> --argument value …',
    "       concierge <tool> --json '{…}'      all arguments as one object; - reads it from standard input",
    '       concierge <tool> --help            what it does and what it takes',
    '',
    'Tools:',
    ...tools.map(({ name, description }) => `  ${name.padEnd(width)}  ${summaryOf(description)}`),
    '',
    'The result goes to standard output, errors to standard error. With --as-json the result is {"output": …, "isError": …}.',
    'A value of - is read from standard input: date | concierge write --path memory/now.md --content -',
    exits,
  ].join('\n');
}

/** `concierge <tool> --help`. */
export function toolHelp({ name, description }: ModelTool, known: readonly Argument[]): string {
  const sorted = known.toSorted((one, other) => Number(other.isRequired) - Number(one.isRequired));
  const usage = sorted.map((argument) => (argument.isRequired ? formOf(argument) : `[${formOf(argument)}]`));
  return [
    `Usage: ${['concierge', name, ...usage].join(' ')}`,
    '',
    description,
    '',
    sorted.length === 0 ? 'It takes no arguments.' : 'Arguments:',
    ...sorted.map((argument) => lineOf(argument)),
    '',
    "All arguments at once: --json '{…}', or --json - from standard input. A value of - is read from standard input.",
    'With --as-json the result is one JSON object: {"output": …, "isError": …}.',
    exits,
  ].join('\n');
}

function formOf({ name, kinds, choices }: Argument): string {
  if (choices.length > 0) return `--${name} ${choices.join('|')}`;
  if (kinds.size === 1 && kinds.has('boolean')) return `--${name}`;
  return `--${name} <${kinds.size === 0 ? 'value' : [...kinds].join('|')}>`;
}

function lineOf(argument: Argument): string {
  const facts = [
    argument.isRequired ? 'required' : '',
    argument.kinds.has('array') ? 'a JSON array, or given several times' : '',
    argument.kinds.has('object') ? 'as JSON' : '',
    argument.defaultValue === undefined ? '' : `default ${argument.defaultValue}`,
  ].filter((fact) => fact !== '');
  const about = [facts.length === 0 ? '' : `(${facts.join('; ')})`, argument.description].filter((part) => part !== '').join(' ');
  return `  ${formOf(argument)}${about === '' ? '' : `\n      ${about}`}`;
}

function summaryOf(description: string): string {
  const sentence = /^[^]*?[.:;](?=\s|$)/u.exec(description)?.[0].slice(0, -1) ?? description;
  const line = sentence.replaceAll(/\s+/gu, ' ');
  return line.length <= SUMMARY_MAX_CHARACTERS ? line : `${line.slice(0, line.lastIndexOf(' ', SUMMARY_MAX_CHARACTERS))} …`;
}
