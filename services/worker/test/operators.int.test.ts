import { describe, expect, it } from '@jest/globals';
import { LogLine, ProviderHealth, Series, UsageOfTenant } from '@concierge/contract';
import { eventually, gate, say, status, until } from '@concierge/testing';
import { z } from 'zod';
import { TestSystem } from './test-system.ts';

/** A sample is taken every ten seconds, on a machine that may stand still. */
const SAMPLED_WITHIN_MS = 120_000;

async function ask(whole: TestSystem, path: string, method = 'GET'): Promise<unknown> {
  const answer = await fetch(`${whole.system.url}${path}`, { method });
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.json();
}

const Workers = z.array(z.object({ id: z.string(), isDrained: z.boolean(), state: z.string(), running: z.number() }));
type Seen = z.infer<typeof Workers>[number];

async function listWorkers(whole: TestSystem): Promise<Seen[]> {
  return Workers.parse(await ask(whole, '/ops/api/workers'));
}

/** One that stood still for five seconds is in no list until its next report. */
async function findWorker(whole: TestSystem, isMeant: (worker: Seen) => boolean): Promise<Seen> {
  return await eventually(async () => (await listWorkers(whole)).find(isMeant));
}

async function setDrained(whole: TestSystem, id: string, isDrained: boolean): Promise<void> {
  await eventually(async () => ask(whole, `/ops/api/workers/${id}/${isDrained ? 'drain' : 'undrain'}`, 'POST'));
  await eventually(async () => (await listWorkers(whole)).find((worker) => worker.id === id)?.isDrained === isDrained);
}

/** Which workers made the calls: a key begins with the name of its process. */
function callers({ requests }: TestSystem['model']): Set<string | undefined> {
  return new Set(requests.map(({ headers }) => /^Bearer ([^.]+)\./u.exec(headers.authorization ?? '')?.[1]));
}

describe('a worker that an operator drains', () => {
  it('ends what it runs, takes nothing new, and takes turns again when it is told', async () => {
    await using whole = await TestSystem.start({ workers: 2 });
    const tenant = await whole.tenant();
    const held = gate();
    whole.model.when('hold on', [until(held.opened), say('held')]);
    for (let turn = 0; turn < 9; turn += 1) whole.model.when(`turn ${String(turn)}.`, [say('yes')]);
    const running = await tenant.ask('admin', 'hold on');
    const busy = await findWorker(whole, (worker) => worker.running === 1);
    // A worker runs a turn from when it has taken it, and calls the model a moment later.
    const [first] = await eventually(() => {
      const found = callers(whole.model);
      return found.size === 1 ? [...found] : undefined;
    });
    await setDrained(whole, busy.id, true);
    expect(await findWorker(whole, ({ id }) => id === busy.id)).toMatchObject({ state: 'draining', running: 1 });
    for (let turn = 0; turn < 4; turn += 1) await (await tenant.ask('cs', `turn ${String(turn)}.`)).events();
    const others = whole.model.requests.filter(({ headers }) => !headers.authorization?.startsWith(`Bearer ${first ?? ''}.`));
    expect(others).toHaveLength(4);
    held.open();
    expect((await running.events()).at(-1)?.type).toBe('done');
    const { id: other } = await findWorker(whole, ({ id }) => id !== busy.id);
    await setDrained(whole, busy.id, false);
    await setDrained(whole, other, true);
    const before = whole.model.requests.length;
    await (await tenant.ask('cs', 'turn 8.')).events();
    const after = whole.model.requests.slice(before).map(({ headers }) => headers.authorization?.startsWith(`Bearer ${first ?? ''}.`));
    expect(after).toEqual([true]);
    expect((await fetch(`${whole.system.url}/ops/api/workers/w_none/drain`, { method: 'POST' })).status).toBe(404);
    const audit = z.array(z.object({ act: z.string(), target: z.string().nullable() })).parse(await ask(whole, '/ops/api/audit'));
    expect(audit.slice(0, 3)).toEqual([
      { act: 'worker.drain', target: other },
      { act: 'worker.undrain', target: busy.id },
      { act: 'worker.drain', target: busy.id },
    ]);
  });
});

describe('what operators look up', () => {
  it('shows over time what ended and failed, what providers did, who used how much, and the log of a turn that failed', async () => {
    await using whole = await TestSystem.start({ crons: 1 });
    const tenant = await whole.tenant();
    // What was done before the first sample of all is not known.
    await eventually(async () => Series.parse(await ask(whole, '/ops/api/series')).points.length > 0, { timeoutMs: SAMPLED_WITHIN_MS });
    whole.model.when('a good one', [say('yes')]);
    whole.model.when('a bad one', [status(400)]);
    const good = await (await tenant.ask('admin', 'a good one')).events();
    expect(good.at(-1)?.type).toBe('done');
    const bad = await (await tenant.ask('admin', 'a bad one')).events();
    expect(bad.at(-1)?.type).toBe('error');
    const [goodId, badId] = [good, bad].map(([first]) => z.string().parse(first?.data['turnId']));

    const seen = await eventually(
      async () => {
        const { points } = Series.parse(await ask(whole, '/ops/api/series'));
        const [ended, failed] = [points.reduce((sum, point) => sum + point.ended, 0), points.reduce((sum, point) => sum + point.failed, 0)];
        return ended >= 2 ? { ended, failed, points } : undefined;
      },
      { timeoutMs: SAMPLED_WITHIN_MS },
    );
    expect([seen.ended, seen.failed]).toEqual([2, 1]);
    expect(seen.points.some(({ runP95Ms, waitP50Ms, slots }) => runP95Ms !== null && waitP50Ms !== null && slots > 0)).toBe(true);
    for (const range of ['24h', '7d']) {
      // A sample is put into one range after the other.
      const ended = await eventually(async () => {
        const { points } = Series.parse(await ask(whole, `/ops/api/series?range=${range}`));
        const sum = points.reduce((sofar, point) => sofar + point.ended, 0);
        return sum >= 2 ? sum : undefined;
      });
      expect(ended).toBe(2);
    }
    const { providers } = z.object({ providers: z.array(ProviderHealth) }).parse(await ask(whole, '/ops/api/health'));
    expect(providers.find(({ calls }) => calls > 0)).toMatchObject({ calls: 1, failures: 1 });
    // The end of a turn waits for the index for two seconds, and no longer.
    const row = await eventually(async () => {
      const rows = z.array(UsageOfTenant).parse(await ask(whole, '/ops/api/usage'));
      return rows.find(({ tenantId, calls }) => tenantId === tenant.keys.tenantId && calls > 0);
    });
    expect(row).toMatchObject({ calls: 1 });
    const own = z.array(UsageOfTenant).parse(await ask(whole, `/ops/api/usage?tenant=${tenant.keys.tenantId}`));
    expect(own).toMatchObject([{ tenantId: tenant.keys.tenantId, calls: 1 }]);

    const lines = await eventually(async () => {
      const found = z.array(LogLine).parse(await ask(whole, `/ops/api/logs?id=${badId ?? ''}`));
      return found.some(({ message }) => message === 'turn ended') ? found : undefined;
    });
    expect(lines.map(({ message, level }) => [message, level])).toContainEqual(['turn failed', 'warn']);
    expect(new Set(lines.map(({ turnId }) => turnId))).toEqual(new Set([badId]));
    expect(await ask(whole, `/ops/api/logs?id=${goodId ?? ''}`)).toEqual([]);
    expect(await ask(whole, `/ops/api/logs?id=${badId ?? ''}&level=fatal`)).toEqual([]);
  });
});
