import { describe, expect, it } from '@jest/globals';
import { TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { AcceptedTurn, Session } from '@concierge/contract';
import { ModelError } from '@concierge/model';
import { createLog, newMetrics } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { TurnCancelled, type TurnRun } from '@concierge/turn';
import type { CapabilityFactories } from '../capabilities/turn-capabilities.ts';
import { unconnected } from '../fixtures/unconnected.ts';
import { call, say, Script, turnRun } from '../fixtures/scripted-run.ts';
import { TurnMetrics } from '../metrics.ts';
import { TurnRunner } from './turn-runner.ts';

const log = createLog({ service: 'test', level: 'silent' });
let scope: TenantScope;

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
});

const buildRun = (parts: Partial<TurnRun> = {}, accepted: Partial<AcceptedTurn> = {}): ReturnType<typeof turnRun> =>
  turnRun(scope, parts, accepted);

function runner(model: Script, capabilities: Partial<CapabilityFactories> = {}): TurnRunner {
  const metrics = new TurnMetrics(newMetrics('test'), () => 0);
  return new TurnRunner({ models: { forRef: () => model }, capabilityFactories: { ...unconnected, ...capabilities }, metrics, log });
}

async function saved({ turn }: TurnRun): Promise<Session> {
  const session = await scope.sessions.load(turn.sessionId);
  if (session === undefined) throw new Error('no session was published');
  return session;
}

describe('a turn that a schedule started', () => {
  it('has at most the tools of its schedule', async () => {
    const run = buildRun({}, { origin: 'schedule', authority: 'admin', tools: ['list_files', 'no_such_tool'] });
    const model = new Script(call('c1', 'write', { path: 'templates/no.md', content: 'x' }), say('done'));
    await runner(model).runTurn(run);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['list_files']);
    expect((await saved(run)).messages).toMatchObject([{}, {}, { role: 'tool', isError: true }, { text: 'done' }]);
  });
});

describe('a turn that another turn started', () => {
  async function below(
    parts: { parentTurnId?: string; tools?: string[]; authority?: 'admin' | 'cs' } = {},
  ): Promise<ReturnType<typeof buildRun>> {
    const parent = buildRun().turn;
    await scope.inbox.accept(parent);
    const { parentTurnId = parent.turnId, tools = ['read', 'bash'], authority = 'admin' } = parts;
    return buildRun({}, { origin: 'subagent', authority, grant: { parentTurnId, depth: 1, tools } });
  }

  it('has at most the tools it was handed, however it asks for others', async () => {
    const run = await below({ tools: ['list_files', 'no_such_tool'] });
    const model = new Script(call('c1', 'write', { path: 'templates/no.md', content: 'x' }), call('c2', 'list_files', {}), say('done'));
    await runner(model).runTurn(run);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['list_files']);
    const session = await saved(run);
    expect(session.messages).toMatchObject([
      { role: 'user', sent: expect.stringContaining('Another agent asks for this') },
      {},
      { isError: true, output: expect.stringContaining('There is no tool "write"') },
      {},
      { isError: false },
      {},
    ]);
    expect(session.turns).toMatchObject([{ parentTurnId: run.turn.grant?.parentTurnId, origin: 'subagent' }]);
  });

  it('gains nothing by its grant that its authority does not give', async () => {
    const run = await below({ tools: ['write', 'read'], authority: 'cs' });
    const model = new Script(say('done'));
    await runner(model).runTurn(run);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['read']);
  });

  it('is cancelled before it begins when its parent turn is gone or cancelled', async () => {
    const gone = await below({ parentTurnId: 't_gone' });
    const left = await below();
    await scope.inbox.markCancelled(left.turn.grant?.parentTurnId ?? '');
    for (const run of [gone, left]) {
      await expect(runner(new Script()).runTurn(run)).resolves.toMatchObject({ event: { data: { finishReason: 'cancelled' } } });
      expect((await saved(run)).messages).toMatchObject([{ role: 'user', text: 'hello there' }]);
    }
  });
});

describe('a turn that started others', () => {
  const ask = call('c1', 'subagents', { action: 'run', task: 'x' });

  async function cancelledBy(run: TurnRun, model: Script): Promise<string[]> {
    const cancelled: string[] = [];
    const cancelSubagents = async ({ turn }: TurnRun): Promise<void> => {
      expect(await scope.sessions.load(turn.sessionId)).toBeUndefined();
      cancelled.push(turn.turnId);
    };
    await runner(model, { cancelSubagents }).runTurn(run);
    return cancelled;
  }

  it('takes them along when it fails, before its own end is published', async () => {
    const run = buildRun();
    expect(await cancelledBy(run, new Script(ask, new ModelError('unavailable', 'x')))).toEqual([run.turn.turnId]);
  });

  it('takes them along when it is cancelled in the attempt after the one that started them', async () => {
    const first = buildRun();
    await cancelledBy(first, new Script(ask, say('x')));
    const intent = first.writer.steps.findIndex(({ kind }) => kind === 'intent');
    const steps = first.writer.steps.slice(0, intent + 1);
    const stopped = AbortSignal.abort(new TurnCancelled('cancelled'));
    const run = buildRun({ steps, attempt: 2, signal: stopped }, { turnId: first.turn.turnId });
    expect(await cancelledBy(run, new Script())).toEqual([run.turn.turnId]);
  });

  it('looks for none when it asked for none, or has the results of all', async () => {
    expect(await cancelledBy(buildRun(), new Script(new ModelError('unavailable', 'x')))).toEqual([]);
    expect(await cancelledBy(buildRun(), new Script(ask, say('x')))).toEqual([]);
  });
});

describe('an agent of the tenant’s own', () => {
  it('that cannot be used ends the turn in an error, with the message kept', async () => {
    await scope.files.writeText('agents/typo.md', '---\nname: typo\n---\n');
    for (const agent of ['nobody', 'typo']) {
      const run = buildRun({}, { agent });
      await expect(runner(new Script()).runTurn(run)).resolves.toMatchObject({
        event: { type: 'error', data: { code: 'not_found', retryable: false, message: expect.stringContaining(agent) } },
      });
      expect((await saved(run)).messages).toMatchObject([{ role: 'user', text: 'hello there' }]);
    }
  });

  it('has the least rights of all that limit it, however it was asked', async () => {
    await scope.files.writeText(
      'agents/guide.md',
      '---\ndescription: x\npublic: true\ntools: [write, read, load_skill]\n---\nYou guide.\n',
    );
    await scope.updateSettings({ agents: { guide: { tools: ['read', 'write', 'bash'] } } });
    const model = new Script(call('c1', 'write', { path: 'skills/y.md', content: 'x' }), call('c2', 'Write ', {}), say('no'));
    const run = buildRun({}, { agent: 'guide', authority: 'admin', sender: 'bob' });
    await runner(model).runTurn(run);
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(['read']);
    expect(model.requests[0]?.system).toContain('You guide.');
    expect((await saved(run)).messages.filter(({ role }) => role === 'tool')).toMatchObject([{ isError: true }, { isError: true }]);
    await expect(scope.files.readText('skills/y.md')).rejects.toMatchObject({ code: 'not_found' });
  });

  it('that is private does not answer strangers', async () => {
    await scope.files.writeText('agents/inner.md', '---\ndescription: x\n---\nSecret.\n');
    const end = await runner(new Script()).runTurn(buildRun({}, { agent: 'inner', authority: 'cs', sender: 'bob' }));
    expect(end.event).toMatchObject({ type: 'error', data: { code: 'scope_required' } });
  });
});
