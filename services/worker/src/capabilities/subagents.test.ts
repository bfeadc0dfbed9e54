import { describe, expect, it } from '@jest/globals';
import { AppError, type TurnInput } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { gate, TestTenants } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import { WorkerDraining, type TurnRun } from '@concierge/turn';
import { turnRun } from '../fixtures/scripted-run.ts';
import { createSubagents, type SubagentOptions } from './subagents.ts';

let scope: TenantScope;

setUpOnce(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
});

/** Turns that are accepted and never end. */
class EndlessTurns {
  readonly accepted: TurnInput[] = [];
  readonly cancelled: string[] = [];
  readonly waiting = gate();

  get options(): SubagentOptions {
    const { accepted, cancelled, waiting } = this;
    return {
      turns: {
        accept: (_scope, input) => {
          if (input.text === 'refused') return Promise.reject(new AppError('overloaded', 'Too much to do.'));
          accepted.push(input);
          return Promise.resolve({ turnId: `t_${String(accepted.length)}`, sessionId: '0'.repeat(32), replayed: false });
        },
        cancel: (_scope, turnId) => {
          cancelled.push(turnId);
          return Promise.reject(new AppError('not_found'));
        },
        cancelChildren: () => Promise.resolve(),
      },
      streams: {
        fold: async (_scope, _turnId, signal) => {
          if (accepted.length === 2) waiting.open();
          return new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          });
        },
      },
    };
  }

  async run(run: TurnRun, tasks: readonly string[], signal: AbortSignal): Promise<unknown> {
    const asked = tasks.map((task) => ({ task, agent: undefined }));
    return createSubagents(this.options)
      .subagents(run, { access: 'admin', tools: ['read', 'message'] })
      .runSubagents(asked, { callId: 'c1', signal });
  }
}

describe('sub-agents of a call that is stopped', () => {
  it('are cancelled when the turn goes on without them', async () => {
    const turns = new EndlessTurns();
    const stop = new AbortController();
    const running = turns.run(turnRun(scope), ['a', 'b'], stop.signal);
    await turns.waiting.opened;
    stop.abort(new Error('the command took too long'));
    await expect(running).rejects.toThrow('the command took too long');
    expect(turns.cancelled).toEqual(['t_1', 't_2']);
  });

  it('are left to the worker that goes on when it is the turn that stops', async () => {
    const turns = new EndlessTurns();
    const stop = new AbortController();
    const running = turns.run(turnRun(scope, { signal: stop.signal }), ['a', 'b'], stop.signal);
    await turns.waiting.opened;
    stop.abort(new WorkerDraining('the worker stops'));
    await expect(running).rejects.toThrow(WorkerDraining);
    expect(turns.cancelled).toEqual([]);
  });
});

describe('a sub-agent', () => {
  it('gets an id that follows from its place, and of its parent’s tools what may be handed on', async () => {
    const turns = new EndlessTurns();
    const stop = new AbortController();
    const run = turnRun(scope);
    const running = turns.run(run, ['a', 'b'], stop.signal);
    await turns.waiting.opened;
    const { turnId } = run.turn;
    expect(turns.accepted).toMatchObject([
      { text: 'a', dedupeId: `subagent:${turnId}:c1:0`, grant: { parentTurnId: turnId, depth: 1, tools: ['read'] } },
      { text: 'b', dedupeId: `subagent:${turnId}:c1:1`, authority: 'admin', sender: null },
    ]);
    stop.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
  });

  it('that cannot be accepted is reported as one that failed', async () => {
    const outcomes = await new EndlessTurns().run(turnRun(scope), ['refused'], new AbortController().signal);
    expect(outcomes).toEqual([{ status: 'failed', turnId: null, sessionId: null, reason: 'It could not be started: Too much to do.' }]);
  });

  it('is not started by one that stands at the last depth', async () => {
    const grant = { parentTurnId: 't_0', depth: 2, tools: ['subagents'] };
    await expect(new EndlessTurns().run(turnRun(scope, {}, { grant }), ['a'], new AbortController().signal)).rejects.toThrow('this deep');
  });
});
