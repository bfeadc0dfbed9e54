import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { eventually, gate, untilAborted } from '@concierge/testing';
import type { TurnRun } from '../src/index.ts';
import { input, TestTurns } from './test-turns.ts';

const never = new AbortController().signal;

function readDepth({ turn }: TurnRun): number {
  return turn.grant?.depth ?? 0;
}

/** Starts so many turns below this one and waits for their ends. */
async function askOthers(fixture: TestTurns, run: TurnRun, count: number): Promise<string[]> {
  const depth = readDepth(run) + 1;
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const { turnId } = await fixture.turns.accept(
        run.scope,
        input(`${run.turn.text}.${String(index)}`, {
          origin: 'subagent',
          sender: null,
          dedupeId: `${run.turn.turnId}:${String(index)}`,
          grant: { parentTurnId: run.turn.turnId, depth, tools: [] },
        }),
      );
      const folded = await fixture.streams.fold(run.scope, turnId, run.signal);
      return folded.kind === 'done' ? folded.reply.reply : folded.error.message;
    }),
  );
}

async function ask(fixture: TestTurns, tenant: string, text: string): Promise<string> {
  const scope = await fixture.scope(tenant);
  const { turnId } = await fixture.turns.accept(scope, input(text, { sender: `of ${text}` }));
  const folded = await fixture.streams.fold(scope, turnId, never);
  return folded.kind === 'done' ? folded.reply.reply : folded.error.message;
}

/** Three children each, and two grandchildren each of those: each answers how many turns it counts, itself included. */
function family(fixture: TestTurns): (run: TurnRun) => Promise<string> {
  return async (run) => {
    const count = readDepth(run) === limits.subagentDepthMax ? 0 : 3 - readDepth(run);
    const heard = await askOthers(fixture, run, count);
    const text = String(heard.reduce((sum, said) => sum + Number(said), 1));
    run.writer.emit({ type: 'text_delta', data: { delta: text } });
    return text;
  };
}

describe('a turn that waits for turns it has started', () => {
  it('ends where one turn may run at once, of one tenant and of all', async () => {
    await using fixture = await TestTurns.start();
    fixture.play = family(fixture);
    await fixture.worker({ concurrency: 1, tenantShare: 1 });
    expect(await ask(fixture, 'acme', 'a')).toBe('10');
  });

  it('ends beside many others that wait, of several tenants', async () => {
    await using fixture = await TestTurns.start();
    fixture.play = family(fixture);
    await fixture.worker({ concurrency: 2, tenantShare: 1 });
    for (const tenant of ['acme', 'other']) await fixture.scope(tenant);
    const asked = ['acme', 'other'].flatMap((tenant) => [1, 2, 3, 4].map(async (number) => ask(fixture, tenant, `p${String(number)}`)));
    expect(await Promise.all(asked)).toEqual(asked.map(() => '10'));
    expect(new Set(fixture.started).size).toBe(80);
  });

  it('does not hold up another tenant', async () => {
    await using fixture = await TestTurns.start();
    const held = gate();
    fixture.play = async (run) => {
      if (run.turn.text === 'loud') return (await askOthers(fixture, run, 3)).join();
      if (readDepth(run) > 0) await held.opened;
      run.writer.emit({ type: 'text_delta', data: { delta: 'heard' } });
      return 'heard';
    };
    await fixture.worker({ concurrency: 2, tenantShare: 1 });
    const loud = ask(fixture, 'acme', 'loud');
    await eventually(() => fixture.started.length === 2);
    expect(await ask(fixture, 'quiet', 'hello')).toBe('heard');
    held.open();
    await loud;
  });

  it('has all its live child turns cancelled by one call', async () => {
    await using fixture = await TestTurns.start();
    const scope = await fixture.scope();
    fixture.play = async (run) => {
      if (readDepth(run) === 0) return (await askOthers(fixture, run, 3)).join();
      await untilAborted(run.signal);
      return 'stopped';
    };
    await fixture.worker({ concurrency: 2, tenantShare: 2 });
    const { turnId } = await fixture.turns.accept(scope, input('parent'));
    // The third child waits for a slot. It has to be accepted by then, or it runs when the others have been cancelled.
    await eventually(async () => fixture.started.length === 3 && (await scope.inbox.turnIds()).length === 4);
    await fixture.turns.cancelChildren(scope, turnId);
    await fixture.streams.fold(scope, turnId, never);
    const { items } = await fixture.turns.list(scope, { limit: 10 });
    expect(items.filter(({ origin }) => origin === 'subagent').map(({ status }) => status)).toEqual(
      Array.from({ length: 3 }, () => 'cancelled'),
    );
  });
});
