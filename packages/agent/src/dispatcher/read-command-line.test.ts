import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import type { JsonObject } from '@concierge/contract';
import { listArguments, readCommandLine, type CommandLine } from './read-command-line.ts';

const schema = z.strictObject({
  path: z.string(),
  offset: z.int().optional(),
  ratio: z.number().optional(),
  timeoutMs: z.int().optional(),
  recursive: z.boolean().optional(),
  args: z.array(z.string()).optional(),
  ids: z.array(z.int()).optional(),
  variables: z.record(z.string(), z.unknown()).optional(),
  when: z.union([z.string(), z.int()]).optional(),
  action: z.enum(['list', 'kill']).optional(),
  anything: z.unknown().optional(),
});
const parameters: JsonObject = z.toJSONSchema(schema, { io: 'input' });
const known = listArguments(parameters);

const read = (argv: readonly string[], stdin: string | null = null): CommandLine => readCommandLine(argv, known, stdin);

function readInput(argv: readonly string[], stdin: string | null = null): JsonObject {
  const line = read(['--path', 'p', ...argv], stdin);
  if (line.kind !== 'call') throw new Error(JSON.stringify(line));
  const { path: _path, ...input } = line.input;
  return input;
}

function readProblem(argv: readonly string[], stdin: string | null = null): string {
  const line = read(argv, stdin);
  if (line.kind !== 'wrong') throw new Error(JSON.stringify(line));
  return line.problem;
}

describe('a command line of the dispatcher', () => {
  it.each<[string[], JsonObject]>([
    [['--offset', '12'], { offset: 12 }],
    [['--offset=-3'], { offset: -3 }],
    [['--ratio', '0.5'], { ratio: 0.5 }],
    [['--recursive'], { recursive: true }],
    [['--recursive', 'false'], { recursive: false }],
    [['--recursive', '--offset', '1'], { recursive: true, offset: 1 }],
    [['--args', 'a b', '--args', '--flag'], { args: ['a b', '--flag'] }],
    [['--args', '["a","b"]', '--args', 'c'], { args: ['a', 'b', 'c'] }],
    [['--ids', '1', '--ids=2'], { ids: [1, 2] }],
    [['--variables', '{"name":"Ann","n":[1]}'], { variables: { name: 'Ann', n: [1] } }],
    [['--when', '5'], { when: 5 }],
    [['--when', 'tomorrow'], { when: 'tomorrow' }],
    [['--timeout-ms', '5'], { timeoutMs: 5 }],
    [['--timeout_ms=5'], { timeoutMs: 5 }],
    [['--anything', '{"a":1}'], { anything: { a: 1 } }],
    [['--anything', 'plain'], { anything: 'plain' }],
    [['--json', '{"offset":1,"recursive":true}', '--ratio', '2'], { offset: 1, recursive: true, ratio: 2 }],
    [['--json={"action":"kill"}'], { action: 'kill' }],
  ])('reads %j by the schema', (argv, input) => {
    expect(readInput(argv)).toEqual(input);
  });

  it('takes a string as it stands, whatever it looks like', () => {
    for (const path of ['5', 'true', '{"a":1}', '--path', '', 'a=b', 'zwei Wörter\n']) {
      expect(read(['--path', path])).toEqual({ kind: 'call', input: { path }, asJson: false });
    }
    expect(read(['--path=a=b'])).toMatchObject({ input: { path: 'a=b' } });
  });

  it('takes a value or all of them from standard input', () => {
    expect(read(['--path', '-'], 'from a pipe\n')).toMatchObject({ input: { path: 'from a pipe\n' } });
    expect(read(['--path=-'], 'x')).toMatchObject({ input: { path: 'x' } });
    expect(read(['--json', '-'], '{"path":"a"}')).toMatchObject({ input: { path: 'a' } });
    expect(readProblem(['--path', '-'])).toContain('nothing on standard input');
  });

  it('may be a question for help, wherever it stands', () => {
    for (const argv of [['--help'], ['-h'], ['--offset', '1', '--help']]) expect(read(argv)).toEqual({ kind: 'help' });
  });

  it('may ask for the result as JSON', () => {
    expect(read(['--as-json', '--path', 'p'])).toEqual({ kind: 'call', input: { path: 'p' }, asJson: true });
  });

  it.each<[string[], string]>([
    [[], '--path must be given.'],
    [['notes.md'], '"notes.md" is no --argument'],
    [['--path'], '--path needs a value.'],
    [['--path', 'a', '--path', 'b'], '--path is given twice.'],
    [['--nope', '1'], 'There is no argument --nope. It takes --path, --offset'],
    [['--path', 'p', '--offset', 'ten'], '--offset must be integer, and "ten" is not.'],
    [['--path', 'p', '--offset', '1.5'], '--offset must be integer'],
    [['--path', 'p', '--ids', 'x'], '--ids must be integer'],
    [['--path', 'p', '--variables', '[]'], '--variables must be object'],
    [['--path', 'p', '--recursive=maybe'], '--recursive must be boolean'],
    [['--json', '[1]'], 'What --json was given is not one JSON object.'],
    [['--json', '{'], 'What --json was given is not one JSON object.'],
    [['--json'], '--json needs an object'],
  ])('explains what is wrong with %j', (argv, problem) => {
    expect(readProblem(argv)).toContain(problem);
  });
});
