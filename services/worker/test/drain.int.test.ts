import { describe, expect, it } from '@jest/globals';
import { callTools, eventually, gate, say, until } from '@concierge/testing';
import { TestSystem } from './test-system.ts';

/** Half of it has to pass, and in the other half one held model call has to end, on a machine that may stand still. */
const GRACE_S = 70;
const ROUNDS = 6;
const HELD_ROUND = 2;
const marker = 'count to the end';

describe('a worker that drains in the middle of a turn with many model calls', () => {
  it('hands it on between two of them: none is made twice, and the reader sees one answer without a gap', async () => {
    await using whole = await TestSystem.start({ workers: 2, env: { SHUTDOWN_GRACE_S: String(GRACE_S) } });
    const { model, system } = whole;
    const [first, second] = system.workers;
    // Not before the first one hands on: it would take the turn of one that stands still for longer than a lease.
    await second?.terminate();
    const tenant = await whole.tenant();
    const held = gate();
    for (let round = 0; round < ROUNDS; round += 1) {
      const text = say(`part ${String(round)}. `, { chunks: 2 });
      model.when(marker, [...(round === HELD_ROUND ? [until(held.opened)] : []), text, callTools([{ name: 'list_files', args: {} }])]);
    }
    model.when(marker, [say('the end')]);
    const turn = await tenant.ask('admin', marker);
    await eventually(() => model.requests.length === HELD_ROUND + 1);
    const draining = system.workers.find(({ name }) => callers(model)[0] === name);
    expect(draining).toBe(first);
    const exited = draining?.terminate();
    const line = 'turns go on elsewhere at their next model call';
    await eventually(async () => (await system.readServiceLog(draining?.name ?? '')).includes(line), { timeoutMs: 2 * GRACE_S * 1000 });
    second?.start();
    held.open();
    const events = await turn.events();
    expect(await exited).toBe(0);

    expect(model.requests.map(({ round, aborted }) => [round, aborted])).toEqual(
      Array.from({ length: ROUNDS + 1 }, (_, round) => [round, false]),
    );
    const names = callers(model);
    expect(new Set(names.slice(0, HELD_ROUND + 1))).toEqual(new Set([draining?.name]));
    expect(new Set(names.slice(HELD_ROUND + 1))).toEqual(
      new Set(system.workers.map(({ name }) => name).filter((name) => name !== draining?.name)),
    );

    const types = Map.groupBy(events, ({ type }) => type);
    expect([types.has('text_reset'), types.has('error'), types.get('done')?.length]).toEqual([false, false, 1]);
    const answer = (types.get('text_delta') ?? []).map(({ data }) => data['delta']).join('');
    expect(answer).toBe(`${Array.from({ length: ROUNDS }, (_, round) => `part ${String(round)}. `).join('')}the end`);
    for (const type of ['tool_call_start', 'tool_result'] as const) expect(types.get(type)).toHaveLength(ROUNDS);
    expect((await turn.steps()).filter(({ kind }) => kind === 'model')).toHaveLength(ROUNDS + 1);
  });
});

/** Which workers made the calls: a key begins with the name of its process. */
function callers({ requests }: TestSystem['model']): (string | undefined)[] {
  return requests.map(({ headers }) => /^Bearer ([^.]+)\./u.exec(headers.authorization ?? '')?.[1]);
}
