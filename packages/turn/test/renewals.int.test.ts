import { expect, it, jest } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { LEASE_MS, RENEW_EVERY_MS } from '../src/lanes/lanes.ts';
import { input, parse, TestTurns, textDelta, type BrokenRenewal } from './test-turns.ts';

// A lease is renewed several times.
jest.setTimeout(40_000);

let rig: TestTurns;

setUpEach(async (stack) => {
  rig = stack.use(await TestTurns.start());
});

it.each<BrokenRenewal>(['fails', 'hangs'])('a worker keeps its leases when a renewal %s, and the next one, too', async (broken) => {
  const scope = await rig.scope();
  // Renewed for longer than a lease lasts, so that whatever takes leases over has looked.
  const enough = Math.ceil(LEASE_MS / RENEW_EVERY_MS);
  rig.play = async (run) => {
    run.writer.emit(textDelta('still '));
    await run.writer.flush();
    await eventually(() => rig.renewed >= enough || run.signal.aborted, { timeoutMs: 20_000 });
    run.writer.emit(textDelta('here'));
    return 'still here';
  };
  await rig.worker({ renewals: [broken, broken] });
  const { turnId } = await rig.turns.accept(scope, input('wait'));
  await eventually(() => rig.started.length === 1);
  await rig.worker();
  rig.reconciler.start();
  const events = parse(await rig.read(scope, turnId));
  expect(events.map(({ type }) => type)).toEqual(['session', 'text_delta', 'text_delta', 'done']);
  expect(rig.started).toEqual([turnId]);
});
