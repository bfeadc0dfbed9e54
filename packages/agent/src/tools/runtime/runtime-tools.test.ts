import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import type { CommandResult } from '@concierge/sandbox';
import { exited, RecordedRuntime } from '../../fixtures/recorded-runtime.ts';
import { toolCall } from '../../fixtures/scripted-replies.ts';
import { unusedContext } from '../../fixtures/tool-fixture.ts';
import type { ToolOutcome } from '../../loop/loop-run.ts';
import { ToolRegistry, TurnTools } from '../tool.ts';
import { processTool, bash, exec } from './command-tools.ts';

const runtimeTools = [bash, exec, processTool];

const never = new AbortController().signal;

type Ask = (name: string, input: unknown, progress?: (delta: string) => void) => Promise<ToolOutcome>;

function toolsOver(runtime: RecordedRuntime): Ask {
  const box = new TurnTools({
    set: new ToolRegistry(runtimeTools, 'admin'),
    contextFor: (call) => ({ ...unusedContext, runtime, ...call }),
    onFailure: () => undefined,
  });
  return async (name, input, progress) => box.call(toolCall('c1', name, input), never, progress);
}

const answering = (result: CommandResult): RecordedRuntime => new RecordedRuntime(() => Promise.resolve(result));

describe('bash', () => {
  it('hands its command to bash, with the default time, for its own call', async () => {
    const runtime = answering(exited(0, 'hello\n'));
    const outcome = await toolsOver(runtime)('bash', { command: 'echo hello' });
    expect(outcome).toEqual({ isError: false, output: 'Exit code 0 after 0.4 s.\n\nhello' });
    expect(runtime.commands).toEqual([
      { command: { argv: ['bash', '-c', 'echo hello'], timeoutMs: limits.toolTimeoutMs }, caller: { callId: 'c1', tool: 'bash' } },
    ]);
  });

  it('reports a failing command’s exit code as a result, not as a failure of the tool', async () => {
    const outcome = await toolsOver(answering(exited(3, '')))('bash', { command: 'exit 3' });
    expect(outcome).toEqual({ isError: false, output: 'Exit code 3 after 0.4 s. It printed nothing.' });
  });

  it.each([
    [{ kind: 'timed_out' }, 'its time was over. Give it a larger timeoutMs (at most 600000)'],
    [{ kind: 'out_of_memory' }, 'it needed more memory than there is here'],
    [{ kind: 'stopped' }, 'it was stopped from outside'],
  ] as const)('reports why a command was killed, and what it had printed: %o', async (end, why) => {
    const outcome = await toolsOver(answering(exited(0, 'so far', { end, durationMs: 61_000 })))('bash', { command: 'x' });
    expect(outcome.isError).toBe(true);
    expect(outcome.output).toContain('Killed after 61 s, with everything it had started: ');
    expect(outcome.output).toContain(why);
    expect(outcome.output).toContain('\n\nso far');
  });

  it('names the signal that ended a command', async () => {
    const outcome = await toolsOver(answering(exited(0, '', { end: { kind: 'signalled', signal: 'SIGSEGV' } })))('bash', { command: 'x' });
    expect(outcome.output).toContain('Ended by SIGSEGV');
  });

  it('keeps beginning and end of a flood within what a model is sent, and reports how much there was', async () => {
    const output = `first\n${'x'.repeat(limits.toolOutputModelMaxBytes)}\nlast`;
    const outcome = await toolsOver(answering(exited(0, output, { outputBytes: 5_000_000 })))('bash', { command: 'yes' });
    expect(Buffer.byteLength(outcome.output)).toBeLessThanOrEqual(limits.toolOutputModelMaxBytes);
    expect(outcome.output).toContain('It printed 5000000 bytes, of which the beginning and the end are below');
    expect(outcome.output).toMatch(/\n\nfirst\nx+\n\[… 49\d{5} bytes left out here …\]\nx+\nlast$/u);
  });

  it('may take as long as its argument allows, and is refused more than the most', async () => {
    const { timeoutMs } = bash;
    if (typeof timeoutMs === 'number') throw new Error('not derived from the arguments');
    expect(timeoutMs({ command: 'x', timeoutMs: limits.toolTimeoutMaxMs })).toBeGreaterThan(limits.toolTimeoutMaxMs);
    const outcome = await toolsOver(answering(exited(0, '')))('bash', { command: 'x', timeoutMs: limits.toolTimeoutMaxMs + 1 });
    expect(outcome).toEqual({ isError: true, output: expect.stringContaining('timeoutMs') });
  });

  it.each([{}, { command: '' }, { command: 'a\0b' }, { command: 'ä'.repeat(60_001) }, { command: 'x', cwd: '/' }, { command: ['x'] }])(
    'refuses %j',
    async (input) => {
      const runtime = answering(exited(0, ''));
      expect((await toolsOver(runtime)('bash', input)).isError).toBe(true);
      expect(runtime.commands).toEqual([]);
    },
  );

  it('passes on what the command prints while it runs', async () => {
    const heard: string[] = [];
    const runtime = new RecordedRuntime((_command, { onOutput }) => {
      onOutput?.('one');
      return Promise.resolve(exited(0, 'one'));
    });
    await toolsOver(runtime)('bash', { command: 'x' }, (delta) => heard.push(delta));
    expect(heard).toEqual(['one']);
  });
});

describe('exec', () => {
  it('hands on each argument as it is, and standard input', async () => {
    const runtime = answering(exited(0, 'ok'));
    await toolsOver(runtime)('exec', { program: 'jq', args: ['.a b', '$HOME'], stdin: '{}', timeoutMs: 5 });
    expect(runtime.commands[0]?.command).toEqual({ argv: ['jq', '.a b', '$HOME'], stdin: '{}', timeoutMs: 5 });
  });

  it('refuses a program that is an assignment, and missing arguments', async () => {
    const runtime = answering(exited(0, ''));
    expect((await toolsOver(runtime)('exec', { program: 'PATH=/x', args: [] })).isError).toBe(true);
    expect((await toolsOver(runtime)('exec', { program: 'ls' })).output).toContain('args');
    expect(runtime.commands).toEqual([]);
  });
});

describe('background commands', () => {
  it('are started at once, with the rest of the turn as their time, and named by an id', async () => {
    const runtime = answering(exited(0, ''));
    const outcome = await toolsOver(runtime)('bash', { command: 'sleep\n100', background: true });
    expect(outcome.output).toContain('Started in the background as p1.');
    expect(runtime.commands[0]?.command.timeoutMs).toBe(limits.turnTimeoutMs);
    expect((await toolsOver(runtime)('process', { action: 'list' })).output).toMatch(/^p1: running for \d.*: sleep 100$/u);
  });

  it('report their output since the last time, and how they ended', async () => {
    const runtime = answering(exited(0, ''));
    const ask = toolsOver(runtime);
    await ask('bash', { command: 'x', background: true });
    runtime.unread = 'news';
    expect((await ask('process', { action: 'output', id: 'p1' })).output).toMatch(/^p1: running for .*\n\nnews$/u);
    expect((await ask('process', { action: 'output', id: 'p1', waitMs: 1 })).output).toContain('Nothing new was printed.');
    runtime.background[0] = { id: 'p1', title: 'x', startedAtMs: 0, state: { at: 'ended', result: exited(0, '') } };
    expect((await ask('process', { action: 'output', id: 'p1' })).output).toContain('p1: exit code 0 after 0.4 s');
  });

  it('are killed by their id', async () => {
    const runtime = answering(exited(0, ''));
    await toolsOver(runtime)('process', { action: 'kill', id: 'p1' });
    expect(runtime.killed).toEqual(['p1']);
  });

  it('have to be named', async () => {
    const outcome = await toolsOver(answering(exited(0, '')))('process', { action: 'output' });
    expect(outcome).toEqual({ isError: true, output: expect.stringContaining('No background commands have been started in this turn.') });
  });
});
