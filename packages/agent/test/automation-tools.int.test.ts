import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AcceptedTurn } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ToolTenant } from './tool-tenant.ts';

let tenant: ToolTenant;
let scope: TenantScope;
const box: ToolTenant['box'] = (turn, of) => tenant.box(turn, of);

beforeEach(async () => {
  tenant = await ToolTenant.create();
  scope = tenant.scope;
});
afterEach(async () => tenant[Symbol.asyncDispose]());

describe('cron', () => {
  const daily = { action: 'create', name: 'Report', message: 'Sum up yesterday.', cron: '0 9 * * MON-FRI', timezone: 'Europe/Berlin' };
  const idIn = (output: string): string => /s_[0-9a-f]{32}/u.exec(output)?.[0] ?? '';

  it('makes a schedule, and names its next five runs', async () => {
    const { call, failures } = box();
    const { output, isError } = await call('cron', daily);
    expect(isError).toBe(false);
    expect(output).toMatch(/^Created\.\ns_[0-9a-f]{32} "Report", enabled\nWhen: cron 0 9 \* \* MON-FRI, Europe\/Berlin\n/u);
    expect(output.match(/^- (?:Mon|Tues|Wednes|Thurs|Fri)day,? \d+ \w+ \d{4} at 09:00$/gmu)).toHaveLength(5);
    expect(output).toContain('This plan’s least distance: 1 minute.');
    expect((await call('cron', daily)).output).toContain(idIn(output));
    expect((await scope.schedules.list()).schedules).toMatchObject([
      { createdBy: { kind: 'agent', agent: 'admin', turnId: 't1' }, authority: 'admin' },
    ]);
    expect(failures).toEqual([]);
  });

  it('lists, shows, changes, pauses, resumes and removes', async () => {
    const { call } = box();
    expect((await call('cron', { action: 'list' })).output).toBe('There are no schedules.');
    const id = idIn((await call('cron', daily)).output);
    expect((await call('cron', { action: 'list' })).output).toContain(`${id} "Report": cron 0 9 * * MON-FRI, Europe/Berlin; next `);
    expect((await call('cron', { action: 'update', id, timezone: 'America/New_York' })).output).toContain(
      'cron 0 9 * * MON-FRI, America/New_York',
    );
    expect((await call('cron', { action: 'update', id, deliver_channel: 'telegram', deliver_to: '4242' })).output).toContain(
      'to 4242 on telegram',
    );
    expect((await call('cron', { action: 'update', id, deliver_channel: 'none', name: 'Daily' })).output).toContain('"Daily", enabled');
    expect((await scope.schedules.find(id))?.deliver).toBeNull();
    expect((await call('cron', { action: 'pause', id })).output).toContain('"Daily", paused');
    expect((await call('cron', { action: 'resume', id })).output).toContain('"Daily", enabled');
    expect((await call('cron', { action: 'remove', id })).output).toBe(`Removed ${id}.`);
    expect(await call('cron', { action: 'show', id })).toMatchObject({ isError: true, output: `There is no schedule ${id}. Use list.` });
    expect(await call('cron', { action: 'pause', id })).toMatchObject({ isError: true, output: 'There is no such schedule.' });
  });

  it('asks for a run, the same call once, and reports what became of runs', async () => {
    const { call } = box();
    const id = idIn((await call('cron', daily)).output);
    expect((await call('cron', { action: 'runs', id })).output).toBe('It has not run yet.');
    expect((await call('cron', { action: 'run', id }, 'c2')).output).toContain('begins within seconds');
    await call('cron', { action: 'run', id }, 'c2');
    const runs = await scope.schedules.runs.list(id, 10);
    expect(runs).toMatchObject([{ trigger: 'manual', outcome: 'waiting', turn: null }]);
    const [run] = runs;
    const turn = { id: 't_1', contact_id: 'f'.repeat(32), status: 'failed', error: 'too slow' } as const;
    if (run !== undefined) await scope.schedules.runs.put({ ...run, outcome: 'ran', turn });
    expect((await call('cron', { action: 'runs', id })).output).toMatch(
      /\(asked for\) ran; turn t_1 failed \(too slow\), conversation f{32}$/u,
    );
  });

  it('never schedules more tools than its own turn has, and takes away with a change what the changing one lacks', async () => {
    const few = tenant.box({ agent: 'reporter' }, scope, ['cron', 'read_file']);
    const id = idIn((await few.call('cron', { ...daily, agent: 'admin' })).output);
    expect((await scope.schedules.find(id))?.tools).toEqual(['cron', 'read_file']);
    await box().call('cron', { action: 'update', id, name: 'By the owner’s agent' });
    expect((await scope.schedules.find(id))?.tools).toEqual(['cron', 'read_file']);
    const every = idIn((await box().call('cron', daily, 'c2')).output);
    expect((await scope.schedules.find(every))?.tools).toBeNull();
    await few.call('cron', { action: 'update', id: every, message: 'Read me everything.' });
    expect((await scope.schedules.find(every))?.tools).toEqual(['cron', 'read_file']);
  });

  it('reports when its reply could not be delivered', async () => {
    const { call } = box();
    const asked = { ...daily, deliver_channel: 'telegram', deliver_to: '4242' };
    expect((await call('cron', asked)).output).toContain('Its reply cannot be delivered: telegram is not connected.');
    await tenant.connectTelegram();
    expect((await call('cron', asked)).output).not.toContain('cannot be delivered');
  });

  it('delivers to a webhook of the owner’s, which gets an endpoint of its own', async () => {
    const { call } = box();
    const url = 'https://example.com/report';
    const made = await call('cron', { ...daily, deliver_channel: 'webhook', deliver_to: url });
    expect(made.output).toContain(`The reply goes to ${url}.`);
    expect(await scope.events.endpoints.list()).toMatchObject([{ url, types: [], state: 'enabled' }]);
    const refused = await call('cron', { ...daily, deliver_channel: 'webhook', deliver_to: 'https://ann:secret@example.com/' }, 'c2');
    expect(refused).toMatchObject({ isError: true, output: expect.stringContaining('no address of a webhook') });
  });

  it('takes a moment in the zone it is meant in', async () => {
    await scope.updateSettings({ timezone: 'Europe/Berlin' });
    // Of winter, by every clock here, and not too far away, as the next January is from the first days of one.
    const now = new Date();
    const year = now.getUTCFullYear();
    const day = now.getUTCMonth() < 10 ? `${String(year)}-12-01` : `${String(year + 1)}-01-15`;
    const soon = `${day}T09:00`;
    const { call } = box();
    await call('cron', { action: 'create', name: 'Once', message: 'Go.', at: soon });
    await call('cron', { action: 'create', name: 'There', message: 'Go.', at: soon, timezone: 'America/New_York' }, 'c2');
    await call('cron', { action: 'create', name: 'ReceivedMessage', message: 'Go.', at: `${soon}:00-03:00` }, 'c3');
    expect((await scope.schedules.list()).schedules.map(({ schedule }) => schedule)).toEqual(
      expect.arrayContaining(['08', '14', '12'].map((hour) => ({ at: `${day}T${hour}:00:00.000Z` }))),
    );
  });

  it.each([
    [{ action: 'create', name: 'x', message: 'y' }, 'exactly one of cron, every, at'],
    [{ action: 'create', cron: '0 9 * * *' }, 'create needs name, message'],
    [{ ...daily, every: '1h' }, 'exactly one of cron, every and at'],
    [{ ...daily, cron: '0 9 * *' }, '4 fields instead of five'],
    [{ ...daily, cron: '* * * * * *' }, '6 fields instead of five'],
    [{ ...daily, cron: '@hourly' }, 'instead of five'],
    [{ ...daily, cron: 'H H * * *' }, 'H is no field'],
    [{ ...daily, timezone: 'Berlin' }, 'Berlin is not a time zone'],
    [{ ...daily, agent: 'nobody' }, 'there is no agent nobody'],
    [{ ...daily, deliver_channel: 'telegram' }, 'go together'],
    [{ ...daily, deliver_channel: 'telegram', deliver_to: 'ann' }, '"ann" is nobody on telegram'],
    [{ action: 'create', name: 'x', message: 'y', every: '30s' }, 'at least 1 minute apart'],
    [{ action: 'create', name: 'x', message: 'y', every: 'often' }, 'must be a duration such as 30m'],
    [{ action: 'create', name: 'x', message: 'y', every: '1h', timezone: 'UTC' }, 'timezone goes with cron or at'],
    [{ action: 'create', name: 'x', message: 'y', at: '2020-01-01T00:00:00Z' }, 'in the future'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-30T09:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-30T09:00+01:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-02-20T09:00+99:00' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: 'tomorrow' }, 'is not a time'],
    [{ action: 'create', name: 'x', message: 'y', at: '2027-03-28T02:30', timezone: 'Europe/Berlin' }, 'never show'],
    [{ action: 'show' }, 'show needs id'],
    [{ action: 'update', id: `s_${'0'.repeat(32)}` }, 'needs something to change'],
    [{ action: 'run', id: `s_${'0'.repeat(32)}` }, 'no such schedule'],
    [{ action: 'runs', id: `s_${'0'.repeat(32)}` }, 'no such schedule'],
    [{ action: 'runs' }, 'runs needs id'],
    [{ action: 'remove', id: '../tenant' }, 'is not the id of a schedule'],
  ])('refuses %j', async (input, reason) => {
    const { call, failures } = box();
    const { output, isError } = await call('cron', input);
    expect(output).toContain(reason);
    expect(isError).toBe(true);
    expect((await scope.schedules.list()).schedules).toEqual([]);
    expect(failures).toEqual([]);
  });

  it('holds to the preview plan', async () => {
    const preview = await tenant.tenants.create('small', { plan: 'preview' });
    const { call } = box({}, preview);
    expect((await call('cron', { ...daily, cron: '*/10 * * * *' })).output).toContain('at least 15 minutes apart');
    expect((await call('cron', { ...daily, cron: '*/15 * * * *' })).output).toContain('least distance: 15 minutes');
  });

  it.each<[string, Partial<AcceptedTurn>]>([
    ['a schedule', { origin: 'schedule' }],
    ['a heartbeat', { origin: 'heartbeat' }],
    ['another turn', { origin: 'subagent' }],
    ['another turn, with a grant', { grant: { parentTurnId: 't0', depth: 1, tools: ['cron'] } }],
  ])('makes and changes nothing in a turn that was started by %s', async (_, turn) => {
    const id = idIn((await box().call('cron', daily)).output);
    const { call } = box({ ...turn, turnId: 't2' });
    for (const input of [
      daily,
      { action: 'update', id, name: 'x' },
      { action: 'pause', id },
      { action: 'resume', id },
      { action: 'remove', id },
      { action: 'run', id },
    ]) {
      expect(await call('cron', input)).toMatchObject({
        isError: true,
        output: expect.stringContaining('cannot make or change schedules'),
      });
    }
    expect((await call('cron', { action: 'show', id })).isError).toBe(false);
    expect(await scope.schedules.find(id)).toMatchObject({ name: 'Report', enabled: true });
  });

  it('reports a schedule whose file is damaged', async () => {
    const id = idIn((await box().call('cron', daily)).output);
    await writeFile(join(scope.root, 'cron', `${id}.json`), '{');
    expect((await box().call('cron', { action: 'list' })).output).toContain(`${id} cannot be used, its file is damaged`);
    expect((await box().call('cron', { action: 'remove', id })).isError).toBe(false);
    expect(await readdir(join(scope.root, 'cron'))).toEqual([]);
  });
});
