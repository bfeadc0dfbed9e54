import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { Slots } from '@concierge/runtime';
import { z } from 'zod';
import { emptySession, userMessage } from '../fixtures/loop-fixture.ts';
import { RecordedWriter } from '../fixtures/recorded-writer.ts';
import { MemoryFiles, unusedContext } from '../fixtures/tool-fixture.ts';
import { Conversation } from '../loop/conversation.ts';
import { allTools } from '../tools/all-tools.ts';
import { defineTool, ToolRegistry, TurnTools, type Tool } from '../tools/tool.ts';
import { Dispatcher, exitCodes, type DispatchReply, type CommandGate } from './dispatcher.ts';

const never = new AbortController().signal;

interface Fixture {
  readonly dispatcher: Dispatcher;
  readonly writer: RecordedWriter;
  readonly conversation: Conversation;
  readonly files: MemoryFiles;
  readonly gate: CommandGate;
  readonly ask: (...argv: string[]) => Promise<DispatchReply>;
  readonly pipe: (stdin: string, ...argv: string[]) => Promise<DispatchReply>;
}

const newSlots = (): Slots => new Slots(limits.nestedCallsAtOnce);

function fixture(tools: readonly Tool[] = allTools, access: 'admin' | 'cs' = 'admin'): Fixture {
  const files = new MemoryFiles({ 'notes.md': 'remember\n' });
  const writer = new RecordedWriter();
  const conversation = new Conversation(emptySession, 't1');
  conversation.apply({ kind: 'prompt', message: userMessage('hello') });
  const box = new TurnTools({
    set: new ToolRegistry(tools, access),
    contextFor: (call) => ({ ...unusedContext, access, files, ...call }),
    onFailure: () => undefined,
  });
  const dispatcher = new Dispatcher({ tools: box, writer, conversation, newSlots });
  const gate = dispatcher.open({ callId: 'c1', tool: 'bash' });
  const answer = async (argv: string[], stdin: string | null): Promise<DispatchReply> =>
    dispatcher.answer({ command: gate.token, argv, stdin }, never);
  return {
    dispatcher,
    writer,
    conversation,
    files,
    gate,
    ask: async (...argv) => answer(argv, null),
    pipe: async (stdin, ...argv) => answer(argv, stdin),
  };
}

/** A tool that ends when the test decides, and counts how many of it run. */
class Gated {
  readonly tool: Tool;
  running = 0;
  most = 0;
  readonly #open = Promise.withResolvers<void>();
  readonly #begun = Promise.withResolvers<void>();

  constructor(name: 'status' | 'bash' = 'status') {
    this.tool = defineTool({
      name,
      domain: 'sessions',
      cs: name === 'bash' ? 'never' : 'narrow',
      description: 'waits',
      schema: z.strictObject({}),
      sideEffect: 'none',
      run: async (_input, { signal }) => {
        this.running += 1;
        this.most = Math.max(this.most, this.running);
        this.#begun.resolve();
        const stopped = Promise.withResolvers<never>();
        signal.addEventListener('abort', () => stopped.reject(signal.reason));
        await Promise.race([this.#open.promise, stopped.promise]).finally(() => (this.running -= 1));
        return 'waited';
      },
    });
  }

  async begun(): Promise<void> {
    await this.#begun.promise;
  }

  open(): void {
    this.#open.resolve();
  }
}

describe('the dispatcher', () => {
  it('answers with the tool’s result, and with its error and exit code 1', async () => {
    const { ask } = fixture();
    expect(await ask('read', '--path', 'notes.md')).toEqual({ exitCode: 0, stdout: expect.stringContaining('remember'), stderr: '' });
    const failed = await ask('read', '--path', 'none.md');
    expect(failed).toEqual({ exitCode: 1, stdout: '', stderr: expect.stringMatching(/^concierge read: .*\n$/u) });
  });

  it('takes content from a pipe and really writes it', async () => {
    const { pipe, files } = fixture();
    expect(await pipe('1\n2\n', 'write', '--path', 'memory/n.md', '--content', '-')).toMatchObject({ exitCode: 0 });
    expect(files.texts.get('memory/n.md')).toBe('1\n2\n');
  });

  it('gives result and error as JSON when asked', async () => {
    const { ask } = fixture();
    const good = await ask('read', '--as-json', '--path', 'notes.md');
    expect(JSON.parse(good.stdout)).toEqual({ output: expect.stringContaining('remember'), isError: false });
    const bad = await ask('read', '--as-json', '--path', 'none.md');
    expect(bad).toMatchObject({ exitCode: 1, stderr: '' });
    expect(JSON.parse(bad.stdout)).toMatchObject({ isError: true });
  });

  it('lists exactly the agent’s tools', async () => {
    const { ask } = fixture();
    const help = await ask('--help');
    expect(help.exitCode).toBe(0);
    const listed = [...help.stdout.matchAll(/^ {2}(\w+) {2,}\S/gmu)].map(([, name]) => name);
    expect(listed).toEqual(allTools.map(({ name }) => name));
    expect(await ask()).toMatchObject({ exitCode: 2, stdout: '' });
  });

  it('explains a tool from its schema', async () => {
    const { stdout } = await fixture().ask('bash', '--help');
    expect(stdout).toContain('Usage: concierge bash --command <string> [--timeoutMs <integer>] [--background]');
    expect(stdout).toContain('(required) What bash shall run');
    expect((await fixture().ask('process', '--help')).stdout).toContain('--action list|output|kill');
    expect((await fixture().ask('exec', '--help')).stdout).toContain('a JSON array, or given several times');
  });

  it('has help for every tool there is, whatever its schema', async () => {
    const { ask } = fixture();
    for (const { name } of allTools) {
      expect(await ask(name, '--help')).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`Usage: concierge ${name}`) });
    }
  });

  it('distinguishes a wrong command line from a tool’s error, and journals none of it', async () => {
    const { ask, writer } = fixture();
    expect(await ask('nope')).toEqual({ exitCode: 2, stdout: '', stderr: expect.stringContaining('there is no tool "nope"') });
    expect(await ask('read')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('--path must be given. See: concierge read --help'),
    });
    expect(writer.journal).toEqual([]);
  });

  it('gives cs no tool that is the admin’s', async () => {
    const { ask } = fixture(allTools, 'cs');
    for (const name of ['write', 'bash', 'exec', 'process', 'edit']) expect(await ask(name, '--help')).toMatchObject({ exitCode: 2 });
  });
});

describe('a call through the dispatcher', () => {
  it('is on disk before a side effect happens, and its result after', async () => {
    const { pipe, writer, conversation } = fixture();
    await pipe('x', 'write', '--path', 'a.md', '--content', '-');
    expect(writer.log).toEqual(['step nested_intent', 'persist', 'step nested_result', 'persist']);
    expect(writer.journal).toMatchObject([
      { kind: 'nested_intent', callId: 'c1/1', parentId: 'c1', name: 'write' },
      { kind: 'nested_result', callId: 'c1/1', parentId: 'c1', name: 'write', within: 'bash', isError: false },
    ]);
    expect(conversation.tally.steps).toMatchObject([{ kind: 'tool', name: 'write', within: 'bash', isError: false }]);
  });

  it('is only noted when it changes nothing', async () => {
    const { ask, writer } = fixture();
    await ask('read', '--path', 'notes.md');
    expect(writer.log).toEqual(['step nested_intent', 'step nested_result']);
  });

  it('does not run when its intent cannot be written: the turn is another worker’s', async () => {
    const { pipe, writer, files } = fixture();
    writer.failAt = () => new Error('lease lost');
    expect(await pipe('x', 'write', '--path', 'a.md', '--content', '-')).toMatchObject({ exitCode: 3 });
    expect(files.texts.has('a.md')).toBe(false);
  });

  it('is refused once its command is over', async () => {
    const { ask, gate, writer } = fixture();
    await gate[Symbol.asyncDispose]();
    expect(await ask('read', '--path', 'notes.md')).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('is over') });
    expect(writer.journal).toEqual([]);
  });

  it('is stopped with its command, which waits for it', async () => {
    const gated = new Gated();
    const { ask, gate, writer } = fixture([gated.tool]);
    const asked = ask('status');
    await gated.begun();
    await gate[Symbol.asyncDispose]();
    expect(gated.running).toBe(0);
    expect(writer.journal.map(({ kind }) => kind)).toEqual(['nested_intent', 'nested_result']);
    expect(await asked).toMatchObject({ exitCode: 3, stderr: expect.stringContaining('was stopped') });
  });

  it('runs beside a few others of its command, and the rest wait', async () => {
    const gated = new Gated();
    const { ask } = fixture([gated.tool]);
    const asked = Array.from({ length: limits.nestedCallsAtOnce + 5 }, async () => ask('status'));
    await gated.begun();
    gated.open();
    const replies = await Promise.all(asked);
    expect(replies.every(({ exitCode }) => exitCode === 0)).toBe(true);
    expect(gated.most).toBe(limits.nestedCallsAtOnce);
  });

  it('is refused when the turn has made as many as it may, those of an earlier attempt included', async () => {
    const { conversation, writer } = fixture();
    for (let index = 0; index < limits.nestedCallsMax; index += 1) {
      conversation.apply({ kind: 'nested_intent', callId: `c0/${String(index)}`, parentId: 'c0', name: 'read' });
    }
    const box = new TurnTools({
      set: new ToolRegistry(allTools, 'admin'),
      contextFor: (call) => ({ ...unusedContext, ...call }),
      onFailure: () => undefined,
    });
    const dispatcher = new Dispatcher({ tools: box, writer, conversation, newSlots });
    const { token } = dispatcher.open({ callId: 'c1', tool: 'bash' });
    const reply = await dispatcher.answer({ command: token, argv: ['status'], stdin: null }, never);
    expect(reply).toMatchObject({ exitCode: 4, stderr: expect.stringContaining(`${String(limits.nestedCallsMax)} calls`) });
  });

  it('cannot be made in the name of an outer command by guessing its token', async () => {
    const { dispatcher } = fixture();
    dispatcher.open({ callId: 'c1', tool: 'bash' });
    const guesses = ['0', '1', '2', '3', 'c1', 'bash'];
    const replies = await Promise.all(guesses.map(async (command) => dispatcher.answer({ command, argv: ['status'], stdin: null }, never)));
    expect(replies.map(({ exitCode }) => exitCode)).toEqual(guesses.map(() => exitCodes.notConnected));
  });

  it('may start commands that make calls, but not without end', async () => {
    const gated = new Gated('bash');
    const { dispatcher, gate, writer } = fixture([gated.tool]);
    let innermost = gate;
    for (let depth = 1; depth <= limits.nestedCallsMaxDepth; depth += 1) {
      const begun = writer.journal.length;
      void dispatcher.answer({ command: innermost.token, argv: ['bash'], stdin: null }, never);
      await gated.begun();
      while (writer.journal.length === begun) await Promise.resolve();
      const step = writer.journal.at(-1);
      if (step?.kind !== 'nested_intent') throw new Error('no call was begun');
      innermost = dispatcher.open({ callId: step.callId, tool: 'bash' });
    }
    const reply = await dispatcher.answer({ command: innermost.token, argv: ['bash'], stdin: null }, never);
    expect(reply).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('deep') });
    gated.open();
  });
});
