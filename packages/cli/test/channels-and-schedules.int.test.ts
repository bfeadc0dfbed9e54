import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ChannelTest, ChannelView, ConnectedChannel, ScheduleView } from '@concierge/contract';
import { FakeSlack, FakeTelegram } from '@concierge/testing';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { CommandLine } from './command-line.ts';

let concierge: CommandLine;
let telegram: FakeTelegram;
let slack: FakeSlack;
beforeEach(async () => {
  telegram = await new FakeTelegram({ botToken: '12345:very-secret' }).start();
  slack = await new FakeSlack({ botToken: 'xoxb=1', signingSecret: 's', teamId: 'T1', botUserId: 'U1' }).start();
  concierge = await CommandLine.over({ TELEGRAM_API_URL: telegram.url, SLACK_API_URL: `${slack.url}/` });
  await concierge.json('tenant', 'create', 'acme');
});
afterEach(async () => {
  for (const open of [concierge, telegram, slack]) await open[Symbol.asyncDispose]();
});

describe('concierge channel', () => {
  it('connects a channel from a file, lists it without its credentials, and disconnects it', async () => {
    const file = join(concierge.dataDir, 'telegram.json');
    await writeFile(file, JSON.stringify({ botToken: '12345:very-secret', secretToken: 'hook-secret' }));
    const view = ChannelView.parse(await concierge.json('channel', 'connect', 'acme', 'telegram', '--file', file));
    expect(view).toMatchObject({ app: 'telegram', state: 'enabled', secrets: { botToken: 'set', secretToken: 'set' } });
    const listed = await concierge.run('channel', 'list', 'acme');
    expect(listed.out).toMatch(/^telegram +enabled +never +never +\/webhook\/telegram\/acme$/mu);
    const shown = JSON.stringify([view, listed, await concierge.json('channel', 'list', 'acme')]);
    for (const secret of ['very-secret', 'hook-secret']) expect(shown).not.toContain(secret);
    await concierge.withScope('acme', async (scope) =>
      expect(await scope.channels.open('channel_c')).toMatchObject({ botToken: '12345:very-secret' }),
    );
    expect(await concierge.json('channel', 'disconnect', 'acme', 'channel_c')).toEqual({ channel: 'channel_c', disconnected: true });
    expect(await concierge.json('channel', 'list', 'acme')).toEqual([]);
    expect((await concierge.run('channel', 'disconnect', 'acme', 'telegram')).err).toContain('not connected');
  });

  it('takes settings one by one', async () => {
    const settings = ['botToken=xoxb=1', 'signingSecret=s', 'teamId=T1', 'botUserId=U1'].flatMap((pair) => ['--set', pair]);
    await concierge.json('channel', 'connect', 'acme', 'slack', ...settings);
    await concierge.withScope('acme', async (scope) =>
      expect(await scope.channels.open('channel_d')).toMatchObject({ botToken: 'xoxb=1', teamId: 'T1' }),
    );
  });

  it('has Telegram bring messages to PUBLIC_URL, tests that it does, and takes it back', async () => {
    const env = { PUBLIC_URL: 'https://chat.example.com/' };
    const given = ['acme', 'telegram', '--set', 'botToken=12345:very-secret', '--set', 'secretToken=hook-secret'];
    const connected = await concierge.runWith(env, 'channel', 'connect', ...given);
    expect(connected.out).toContain('credentials: ok. They are those of corner_shop_bot.');
    expect(connected.out).toContain('webhook: ok. Telegram brings messages to https://chat.example.com/webhook/telegram/acme.');
    expect(telegram.webhook).toMatchObject({ url: 'https://chat.example.com/webhook/telegram/acme', secret_token: 'hook-secret' });
    expect((await concierge.runWith(env, 'channel', 'test', 'acme', 'telegram')).code).toBe(0);
    await concierge.runWith(env, 'channel', 'disconnect', 'acme', 'telegram');
    expect(telegram.webhook).toBeUndefined();
  });

  it('shows by its exit code that a test found something', async () => {
    const settings = ['botToken=12345:very-secret', 'secretToken=hook-secret'].flatMap((pair) => ['--set', pair]);
    await concierge.json('channel', 'connect', 'acme', 'telegram', ...settings);
    const { code, out } = await concierge.run('channel', 'test', 'acme', 'telegram', '--json');
    expect(code).toBe(1);
    expect(ChannelTest.parse(JSON.parse(out)).checks).toMatchObject([
      { name: 'binding', ok: true },
      { name: 'credentials', ok: true },
      { name: 'webhook', ok: false, message: expect.stringContaining('brings messages nowhere') },
    ]);
    expect((await concierge.run('channel', 'test', 'acme', 'slack')).err).toContain('not connected');
  });

  it('connects nothing that the provider refuses, and does connect what it cannot be asked about', async () => {
    const settings = ['botToken=9:other', 'secretToken=hook-secret'].flatMap((pair) => ['--set', pair]);
    const refused = await concierge.run('channel', 'connect', 'acme', 'telegram', ...settings);
    expect([refused.code, refused.err]).toEqual([1, 'concierge: Telegram does not know this bot token.\n']);
    expect(await concierge.json('channel', 'list', 'acme')).toEqual([]);
    await telegram[Symbol.asyncDispose]();
    const connected = await concierge.run('channel', 'connect', 'acme', 'telegram', ...settings);
    telegram = await new FakeTelegram({ botToken: '12345:very-secret' }).start();
    expect([connected.code, connected.out]).toEqual([0, expect.stringContaining('credentials: NOT OK. They could not be checked.')]);
    expect(ConnectedChannel.array().parse(await concierge.json('channel', 'list', 'acme'))).toMatchObject([{ state: 'enabled' }]);
  });

  it('takes a file over that lies in the folder of the tenant', async () => {
    const folder = join(concierge.dataDir, 'tenants', 'acme', 'channels');
    await writeFile(join(folder, 'slack.json'), JSON.stringify({ botToken: 'xoxb=1', signingSecret: 's', teamId: 'T1', botUserId: 'U1' }));
    expect((await concierge.run('channel', 'list', 'acme')).out).toMatch(/^slack +enabled/mu);
    expect(await readdir(folder)).toEqual(['channel_d.json']);
  });

  it.each([
    ['META_GRAPH_URL', 'graph.example.com'],
    ['TELEGRAM_API_URL', 'ftp://api.example.com'],
    ['SLACK_API_URL', 'https://user:pass@slack.example.com/api'],
    ['PUBLIC_URL', 'https://chat.example.com/?x=1'],
  ])('does not start with a wrong %s', async (name, value) => {
    const { code, err } = await concierge.runWith({ [name]: value }, 'channel', 'list', 'acme');
    expect(code).toBe(1);
    expect(err).toContain(`${name}: must be an`);
    expect(err).not.toContain('user:pass');
  });

  it.each([
    [['web'], 'web is not a channel that can be connected'],
    [['telegram'], 'telegram needs botToken, secretToken'],
    [['telegram', '--set', 'botToken'], 'name=value'],
    [['telegram', '--set', 'botToken=x', '--set', 'secretToken='], 'secretToken must be'],
    [['telegram', '--set', 'botToken=x', '--set', 'secretToken=y', '--set', 'more=z'], 'These are not the settings of telegram'],
    [['telegram', '--file', '/no/such/file'], 'cannot be read'],
  ])('refuses %j', async (args, reason) => {
    const { code, err } = await concierge.run('channel', 'connect', 'acme', ...args);
    expect(code).toBe(1);
    expect(err).toContain(reason);
    expect(await concierge.json('channel', 'list', 'acme')).toEqual([]);
  });

  it('keeps no credentials where there is no SECRETS_KEY', async () => {
    const { code, err } = await concierge.runWith(
      { SECRETS_KEY: undefined },
      'channel',
      'connect',
      'acme',
      'telegram',
      '--set',
      'botToken=12345:very-secret',
      '--set',
      'secretToken=y',
    );
    expect(code).toBe(1);
    expect(err).toContain('SECRETS_KEY');
  });
});

describe('concierge cron', () => {
  const daily = ['--name', 'Report', '--message', 'Sum up.', '--cron', '0 9 * * *', '--timezone', 'Europe/Berlin'];

  it('makes a schedule, lists, pauses, resumes and removes it', async () => {
    const made = ScheduleView.parse(await concierge.json('cron', 'add', 'acme', ...daily, '--deliver', 'telegram:4242'));
    expect(made).toMatchObject({
      name: 'Report',
      agent: 'admin',
      schedule: { cron: '0 9 * * *', timezone: 'Europe/Berlin' },
      deliver: { channel: 'channel_c', to: '4242' },
      missed: 'run_once',
      createdBy: { kind: 'operator' },
    });
    expect(await concierge.json('cron', 'list', 'acme')).toMatchObject([{ id: made.id, nextRunAt: made.nextRunAt }]);
    expect((await concierge.run('cron', 'pause', 'acme', made.id)).out).toContain('is paused');
    expect((await concierge.run('cron', 'list', 'acme')).out).toContain('paused');
    expect((await concierge.run('cron', 'resume', 'acme', made.id)).out).toContain('its next time is');
    expect(await concierge.json('cron', 'remove', 'acme', made.id)).toEqual({ id: made.id, removed: true });
    expect((await concierge.run('cron', 'list', 'acme')).out).toBe('No schedules.\n');
  });

  it('asks for a run and shows what became of it', async () => {
    const made = ScheduleView.parse(await concierge.json('cron', 'add', 'acme', ...daily));
    expect((await concierge.run('cron', 'runs', 'acme', made.id)).out).toBe('No runs.\n');
    expect(await concierge.json('cron', 'run', 'acme', made.id)).toMatchObject({ trigger: 'manual', outcome: 'waiting' });
    expect((await concierge.run('cron', 'runs', 'acme', made.id)).out).toMatch(/^\S+Z +waiting/mu);
    expect((await concierge.run('cron', 'run', 'acme', `s_${'0'.repeat(32)}`)).err).toContain('no such schedule');
  });

  it('uses the zone of the tenant', async () => {
    await concierge.withScope('acme', async (scope) => await scope.updateSettings({ timezone: 'America/New_York' }));
    const made = await concierge.json('cron', 'add', 'acme', ...daily.slice(0, 6));
    expect(made).toMatchObject({ schedule: { timezone: 'America/New_York' } });
  });

  it.each([
    [['--name', 'x', '--message', 'y'], 'exactly one of'],
    [[...daily, '--every', '1h'], 'exactly one of'],
    [['--name', 'x', '--message', 'y', '--every', '5s'], 'at least 1 minute apart'],
    [['--name', 'x', '--message', 'y', '--at', 'noon'], 'schedule.at'],
    [['--name', 'x', '--message', 'y', '--at', '2020-01-01T00:00:00Z'], 'in the future'],
    [[...daily, '--deliver', 'web:x'], 'nowhere to deliver'],
    [[...daily, '--deliver', 'telegram:ann'], 'numeric chat id'],
    [[...daily, '--agent', 'nobody'], 'there is no agent nobody'],
  ])('refuses %j', async (args, reason) => {
    const { code, err } = await concierge.run('cron', 'add', 'acme', ...args);
    expect(err).toContain(reason);
    expect(code).toBe(1);
  });

  it('lists the damaged files, and fails', async () => {
    const id = `s_${'0'.repeat(32)}`;
    const made = ScheduleView.parse(await concierge.json('cron', 'add', 'acme', ...daily));
    await concierge.withScope('acme', async (scope) => await writeFile(join(scope.root, 'cron', `${id}.json`), '{'));
    const { code, out } = await concierge.run('cron', 'list', 'acme');
    expect(code).toBe(1);
    expect(out).toContain('cannot be used');
    const listed = await concierge.run('cron', 'list', 'acme', '--json');
    expect([listed.code, JSON.parse(listed.out)]).toEqual([
      1,
      [expect.objectContaining({ id: made.id }), { id, reason: expect.any(String) }],
    ]);
  });
});
