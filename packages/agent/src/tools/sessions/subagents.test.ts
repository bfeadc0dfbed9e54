import { describe, expect, it } from '@jest/globals';
import { limits, type JsonObject } from '@concierge/contract';
import { unusedContext } from '../../fixtures/tool-fixture.ts';
import { ToolError } from '../tool.ts';
import type { ChildOutcome, ChildTask, ToolContext } from '../tool-context.ts';
import { subagents } from './subagents.ts';

const ids = { turnId: 't_1', sessionId: 's1' };

/** The tool over sub-agents that answer so; `asked` keeps what it asked for. */
function over(...outcomes: ChildOutcome[]): { run: (input: JsonObject) => Promise<string>; asked: (readonly ChildTask[])[] } {
  const asked: (readonly ChildTask[])[] = [];
  const context: ToolContext = {
    ...unusedContext,
    signal: new AbortController().signal,
    listAgents: () => Promise.resolve([{ name: 'admin', description: 'Works' }]),
    runSubagents: (tasks) => {
      asked.push(tasks);
      return Promise.resolve(outcomes);
    },
  };
  return { asked, run: async (input) => subagents.run(input, context) };
}

describe('the tool subagents', () => {
  it('asks for one task, or for several with an agent each', async () => {
    const { run, asked } = over();
    await run({ action: 'run', task: 'x', agent: 'admin' });
    await run({ action: 'run', tasks: [{ task: 'y' }, { task: 'z', agent: 'cs' }] });
    expect(asked).toEqual([
      [{ task: 'x', agent: 'admin' }],
      [
        { task: 'y', agent: undefined },
        { task: 'z', agent: 'cs' },
      ],
    ]);
  });

  it.each([
    { action: 'run' },
    { action: 'run', task: '' },
    { action: 'run', task: 'x', tasks: [{ task: 'y' }] },
    { action: 'run', agent: 'admin', tasks: [{ task: 'y' }] },
    { action: 'run', tasks: [] },
    { action: 'run', tasks: Array.from({ length: limits.subagentsPerCallMax + 1 }, () => ({ task: 'y' })) },
    { action: 'run', task: 'x', agent: '../x' },
    { action: 'kill', task: 'x' },
    { task: 'x' },
  ])('refuses %j', async (input) => {
    const { run, asked } = over();
    await expect(run(input)).rejects.toThrow(ToolError);
    expect(asked).toEqual([]);
  });

  it('reports what became of each and where to read on', async () => {
    const { run } = over(
      { status: 'done', ...ids, reply: ' found it\n' },
      { status: 'failed', ...ids, reason: 'The model failed.' },
      { status: 'failed', turnId: null, sessionId: null, reason: 'It could not be started.' },
    );
    expect(await run({ action: 'run', tasks: [{ task: 'a' }, { task: 'b' }, { task: 'c' }] })).toBe(
      [
        '[1 of 3] done (turn t_1, session s1)\nfound it',
        '[2 of 3] failed (turn t_1, session s1)\nThe model failed.',
        '[3 of 3] failed\nIt could not be started.',
      ].join('\n\n'),
    );
  });

  it('cuts long answers one by one, so that all of them fit into its result', async () => {
    const count = limits.subagentsPerCallMax;
    const { run } = over(...Array.from({ length: count }, (): ChildOutcome => ({ status: 'done', ...ids, reply: 'é'.repeat(50_000) })));
    const output = await run({ action: 'run', tasks: Array.from({ length: count }, () => ({ task: 'x' })) });
    expect(Buffer.byteLength(output)).toBeLessThan(limits.toolOutputModelMaxBytes);
    expect(output.match(/\[cut here: session_history/gu)).toHaveLength(count);
    expect(output).toContain(`[${String(count)} of ${String(count)}] done`);
  });

  it('lists the agents there are', async () => {
    expect(await over().run({ action: 'list' })).toBe('admin: Works');
  });
});
