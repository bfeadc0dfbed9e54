import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import { ScheduleRunView, ScheduleView, TurnView } from '@concierge/contract';
import { eventually } from '@concierge/testing';
import { setUpOnce } from '@concierge/testing/set-up';
import type { Answer } from './client.ts';
import { ContractSystem, promise, untilListed, type Tenant } from './fixture.ts';

let contract: ContractSystem;

setUpOnce(async (stack) => {
  contract = stack.use(await ContractSystem.start({ crons: 3 }));
});

const soon = (afterMs: number): string => new Date(Date.now() + afterMs).toISOString();

async function make(tenant: Tenant, body: object): Promise<ScheduleView> {
  const answer = await tenant.as('admin').request('/api/cron', { body: { name: 'Report', message: '[[say:All is well.]]', ...body } });
  expect(answer.status).toBe(201);
  return ScheduleView.parse(answer.json());
}

async function listRuns(tenant: Tenant, id: string): Promise<ScheduleRunView[]> {
  return z.array(ScheduleRunView).parse((await tenant.as('read').get(`/api/cron/${id}/runs`)).json());
}

describe('schedules', () => {
  promise(['C/4/7', 'SI/what-the-service-does/3'], 'fire one turn at their time, whatever number of replicas there is', async () => {
    const tenant = await contract.tenant();
    // A machine that stands still for so long is asked for another time: one that is past is refused.
    const { at, id, nextRunAt } = await eventually(async () => {
      const next = soon(10_000);
      return { at: next, ...(await make(tenant, { schedule: { at: next } })) };
    });
    expect(nextRunAt).toBe(at);
    const [run] = await eventually(async () => {
      const runs = await listRuns(tenant, id);
      return runs[0]?.turn?.status === 'done' ? runs : undefined;
    });
    expect(run).toMatchObject({ scheduledAt: at, trigger: 'schedule', outcome: 'ran', delivery: null });
    await untilListed(tenant, 1);
    const turns = z.array(TurnView).parse((await tenant.as('read').get('/api/turns')).json());
    expect(turns).toMatchObject([{ id: run?.turn?.id, origin: 'schedule', agent: 'admin', status: 'done' }]);
    expect((await tenant.as('read').get(`/api/sessions/${run?.turn?.contact_id ?? ''}`)).text).toContain('All is well.');
    expect(await listRuns(tenant, id)).toHaveLength(1);
  });

  promise(['C/4/7'], 'are made, read, changed, paused, run now and removed', async () => {
    const tenant = await contract.tenant();
    const client = tenant.as('admin');
    const made = await make(tenant, { schedule: { cron: '0 9 * * *', timezone: 'Europe/Berlin' } });
    expect(made).toMatchObject({ agent: 'admin', deliver: null, missed: 'run_once', overlap: 'skip', enabled: true });
    const path = `/api/cron/${made.id}`;
    expect((await client.get('/api/cron')).json()).toEqual([made]);
    expect((await client.get(path)).json()).toEqual(made);
    const paused = await client.request(path, { method: 'PATCH', body: { enabled: false, name: 'Daily' } });
    expect(paused.json()).toMatchObject({ id: made.id, name: 'Daily', enabled: false, nextRunAt: null });
    const asked = await client.request(`${path}/run`, { method: 'POST' });
    expect(asked.status).toBe(202);
    expect(ScheduleRunView.parse(asked.json())).toMatchObject({ trigger: 'manual', outcome: 'waiting', turn: null });
    await eventually(async () => (await listRuns(tenant, made.id))[0]?.turn?.status === 'done');
    expect((await client.request(path, { method: 'DELETE' })).status).toBe(204);
    for (const gone of [path, `${path}/runs`]) expect((await client.get(gone)).problem()).toMatchObject({ code: 'not_found' });
    expect((await client.request(`${path}/run`, { method: 'POST' })).problem()).toMatchObject({ code: 'not_found' });
  });

  promise(['C/4/7', 'C/3/6'], 'deliver to a channel under any of its names', async () => {
    const client = (await contract.tenant()).as('admin');
    const asked = async (deliver: unknown): Promise<Answer> =>
      client.request('/api/cron', { body: { name: 'x', message: 'y', schedule: { every: '1h' }, deliver } });
    const channel = 'channel_c';
    for (const name of ['telegram', channel]) {
      const made = (await asked({ channel: name, to: '77' })).json();
      expect(made).toMatchObject({ deliver: { channel, to: '77' } });
      const changed = await client.request(`/api/cron/${ScheduleView.parse(made).id}`, {
        method: 'PATCH',
        body: { deliver: { channel: 'slack', to: 'C0SHOP' } },
      });
      expect(changed.json()).toMatchObject({ deliver: { channel: 'channel_d', to: 'C0SHOP' } });
    }
    for (const wrong of [{ channel: 'web', to: '77' }, { channel: 'telegram' }, { webhook: 'ftp://example.com' }])
      expect((await asked(wrong)).problem()).toMatchObject({ status: 400, errors: [{ path: expect.stringMatching(/^deliver/u) }] });
  });

  promise(['C/4/7'], 'are refused where they could not be kept to, with the field that is wrong', async () => {
    const preview = await contract.tenant('preview');
    const refuse = async (schedule: object): Promise<unknown> =>
      (await preview.as('admin').request('/api/cron', { body: { name: 'x', message: 'y', schedule } })).problem();
    const invalid = (path: string): object => ({ status: 400, code: 'invalid_request', errors: [{ path }] });
    expect(await refuse({ every: '10m' })).toMatchObject(invalid('schedule.every'));
    expect(await refuse({ cron: '*/5 * * * *', timezone: 'UTC' })).toMatchObject(invalid('schedule.cron'));
    expect(await refuse({ at: '2020-01-01T00:00:00Z' })).toMatchObject(invalid('schedule.at'));
    expect(await refuse({ cron: '0 9 * * *', timezone: 'Berlin' })).toMatchObject({ code: 'invalid_request' });
    await make(preview, { schedule: { every: '15m' } });
  });

  promise(['C/4/7', 'C/2/4'], 'of a suspended tenant do not fire', async () => {
    const tenant = await contract.tenant();
    const tenants = await contract.system.tenants();
    await tenants.setSuspended(tenant.tenantId, true);
    const { schedules } = await contract.system.scope(tenant.tenantId);
    const once = { name: 'Report', message: '[[say:All is well.]]', missed: 'run_all' as const };
    // A machine that stands still for so long is asked for another time: one that is past is refused.
    const { id } = await eventually(async () =>
      schedules.create({ ...once, schedule: { at: soon(1500) } }, { by: { kind: 'operator' }, authority: 'admin' }),
    );
    await eventually(async () => (await schedules.runs.list(id, 10)).length > 0);
    await tenants.setSuspended(tenant.tenantId, false);
    expect(await listRuns(tenant, id)).toMatchObject([{ outcome: 'skipped', reason: 'the tenant is suspended', turn: null }]);
  });
});
