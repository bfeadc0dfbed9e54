import { describe, expect, it } from '@jest/globals';
import { AppError, limits, mayUseTool, type JsonObject } from '@concierge/contract';
import { z } from 'zod';
import { toolCall } from '../fixtures/scripted-replies.ts';
import { unusedContext } from '../fixtures/tool-fixture.ts';
import { allTools } from './all-tools.ts';
import { defineTool, ToolError, ToolRegistry, TurnTools, type Tool } from './tool.ts';
import type { ToolAccess } from './tool-access.ts';

const neverAborted = new AbortController().signal;

const defined = (run: (input: JsonObject, signal: AbortSignal) => Promise<string>, timeoutMs?: number): Tool =>
  defineTool({
    name: 'read',
    domain: 'files',
    cs: 'narrow',
    description: 'reads',
    narrowDescription: 'reads less',
    schema: z.strictObject({ path: z.string(), limit: z.int().optional() }),
    sideEffect: 'none',
    ...(timeoutMs !== undefined && { timeoutMs }),
    run: async (input, context) => run(input, context.signal),
  });

function openTools(
  tools: readonly Tool[],
  { access = 'admin', allow }: { access?: ToolAccess; allow?: string[] } = {},
): TurnTools & { failures: unknown[] } {
  const failures: unknown[] = [];
  const set = new ToolRegistry(tools, access, allow);
  return Object.assign(
    new TurnTools({ set, contextFor: (call) => ({ ...unusedContext, ...call }), onFailure: ({ error }) => failures.push(error) }),
    { failures },
  );
}

describe('an agent’s tools', () => {
  it('are all there are for the admin, with a schema of an object each', () => {
    const { offered } = openTools(allTools);
    expect(offered.map(({ name }) => name)).toEqual(allTools.map(({ name }) => name));
    expect(offered.map(({ name }) => name)).toEqual(expect.arrayContaining(['read', 'bash', 'message', 'cron', 'memory_get']));
    for (const { parameters } of offered) expect(parameters).toMatchObject({ type: 'object', additionalProperties: false });
    expect(offered[0]?.parameters).toMatchObject({ required: ['path'] });
  });

  it('are for cs only what the contract allows, described in their narrower form', () => {
    const { offered } = openTools(allTools, { access: 'cs' });
    expect(offered.map(({ name }) => name)).toEqual(allTools.map(({ name }) => name).filter((name) => mayUseTool('cs', name)));
    expect(offered[0]?.description).toContain('skills/ or templates/');
  });

  it('are cut down further by the agent’s own list, which cannot add any', () => {
    expect(openTools(allTools, { allow: ['read', 'status', 'no_such_tool'] }).offered.map(({ name }) => name)).toEqual(['read', 'status']);
    expect(openTools(allTools, { access: 'cs', allow: ['write'] }).offered).toEqual([]);
  });

  it('refuse a forbidden and an unknown name with what there is instead', async () => {
    const box = openTools(allTools, { access: 'cs' });
    for (const name of ['write', 'bash', 'toString']) {
      const outcome = await box.call(toolCall('1', name), neverAborted);
      expect(outcome).toEqual({
        isError: true,
        output: expect.stringContaining(`There is no tool "${name}". Use one of: read, `),
      });
    }
  });

  it('answer bad arguments with what is wrong, and run nothing', async () => {
    let ran = 0;
    const box = openTools([
      defined(() => {
        ran += 1;
        return Promise.resolve('');
      }),
    ]);
    const call = async (text: string): Promise<string> => (await box.call({ id: '1', name: 'read', arguments: text }, neverAborted)).output;
    expect(await call('{"path":')).toContain('not valid JSON');
    expect(await call('[1]')).toContain('must be one JSON object');
    expect(await call('{"path":7,"extra":1}')).toMatch(/- path: .*\n- .*extra/u);
    expect(await call(`{"path":${'['.repeat(70)}${']'.repeat(70)}}`)).toContain('deeper than 64 levels');
    expect(ran).toBe(0);
  });

  it('take null for an argument that is left out', async () => {
    const box = openTools([defined((input) => Promise.resolve(JSON.stringify(input)))]);
    expect(await box.call(toolCall('1', 'read', { path: 'x', limit: null }), neverAborted)).toEqual({
      output: '{"path":"x"}',
      isError: false,
    });
  });

  it('turn every failure into a result, and show only errors that were written to be shown', async () => {
    const failing = (error: Error): ReturnType<typeof openTools> => openTools([defined(() => Promise.reject(error))]);
    const readOutcome = async (box: TurnTools): Promise<string> =>
      (await box.call(toolCall('1', 'read', { path: 'x' }), neverAborted)).output;
    expect(await readOutcome(failing(new ToolError('try this')))).toBe('try this');
    expect(await readOutcome(failing(new AppError('not_found', 'There is no such file.')))).toBe('There is no such file.');
    const broken = failing(new Error('secret path /srv/x'));
    expect(await readOutcome(broken)).not.toContain('secret');
    expect(broken.failures).toHaveLength(1);
  });

  it('stop a tool at its deadline even when it does not listen', async () => {
    const box = openTools([defined(() => new Promise<string>(() => undefined), 20)]);
    expect(await box.call(toolCall('1', 'read', { path: 'x' }), neverAborted)).toEqual({
      isError: true,
      output: 'read took longer than 0.02 seconds and was stopped.',
    });
  });

  it('give way to the turn’s signal with its reason', async () => {
    const stop = new AbortController();
    const box = openTools([
      defined(() => {
        stop.abort(new Error('cancelled'));
        return new Promise<string>(() => undefined);
      }),
    ]);
    await expect(box.call(toolCall('1', 'read', { path: 'x' }), stop.signal)).rejects.toThrow('cancelled');
  });

  it('let a change that has begun come to its end when the turn is stopped', async () => {
    const stop = new AbortController();
    const writing = defineTool({
      name: 'write',
      domain: 'files',
      cs: 'never',
      description: 'writes',
      schema: z.strictObject({}),
      sideEffect: 'writes',
      run: async () => {
        stop.abort(new Error('draining'));
        await new Promise(setImmediate);
        return 'written';
      },
    });
    await expect(openTools([writing]).call(toolCall('1', 'write'), stop.signal)).resolves.toEqual({ isError: false, output: 'written' });
  });

  it('report how a change ended that was stopped with the turn, where the tool itself can report it', async () => {
    const stop = new AbortController();
    const writing = defineTool({
      name: 'write',
      domain: 'files',
      cs: 'never',
      description: 'writes',
      schema: z.strictObject({}),
      sideEffect: 'writes',
      run: async () => {
        stop.abort(new Error('draining'));
        await new Promise(setImmediate);
        throw new ToolError('half of it is written');
      },
    });
    const outcome = await openTools([writing]).call(toolCall('1', 'write'), stop.signal);
    expect(outcome).toEqual({ isError: true, output: 'half of it is written' });
  });

  it('may take as long as their arguments state', async () => {
    const slow = defineTool({
      name: 'status',
      domain: 'sessions',
      cs: 'narrow',
      description: 'waits',
      schema: z.strictObject({ ms: z.int() }),
      sideEffect: 'none',
      timeoutMs: ({ ms }) => ms,
      run: async (_input, { signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw signal.reason;
      },
    });
    const { output } = await openTools([slow]).call(toolCall('1', 'status', { ms: 5 }), neverAborted);
    expect(output).toBe('status took longer than 0.005 seconds and was stopped.');
    expect((await openTools([slow]).call(toolCall('1', 'status', { ms: 'x' }), neverAborted)).output).toContain('not valid');
  });

  it('cap what the model gets, mark the cut, and never split a character', async () => {
    const box = openTools([defined(() => Promise.resolve('😀'.repeat(50_000)))]);
    const { output } = await box.call(toolCall('1', 'read', { path: 'x' }), neverAborted);
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(limits.toolOutputModelMaxBytes);
    expect(output).toMatch(/^(?:😀)+\n\[cut here: the whole result has 200000 bytes\]$/u);
  });

  it('hand on the images that a tool shows, and none of a call that failed', async () => {
    const upload = { id: `u_${'0'.repeat(32)}`, name: 'cat.png', type: 'image/png', size: 3 } as const;
    const showing = (fails: boolean): Tool =>
      defineTool({
        name: 'view_attachment',
        domain: 'documents',
        cs: 'narrow',
        description: 'shows',
        schema: z.strictObject({}),
        sideEffect: 'none',
        run: async (_input, { show }) => {
          show(upload);
          if (fails) throw new ToolError('no');
          return Promise.resolve('shown');
        },
      });
    const call = toolCall('1', 'view_attachment');
    expect(await openTools([showing(false)]).call(call, neverAborted)).toEqual({ output: 'shown', isError: false, attachments: [upload] });
    expect(await openTools([showing(true)]).call(call, neverAborted)).toEqual({ output: 'no', isError: true });
  });

  it('give no lone half of a pair to an encoder', async () => {
    const box = openTools([defined(() => Promise.resolve('a\ud83d'))]);
    expect((await box.call(toolCall('1', 'read', { path: 'x' }), neverAborted)).output).toBe('a\ufffd');
  });
});
