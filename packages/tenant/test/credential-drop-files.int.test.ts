import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { TenantScope } from '../src/index.ts';
import { startTenants, type TestTenants } from './support.ts';

const telegram = { botToken: '12345:telegram-token', secretToken: 'hook-secret' };
const whatsapp = { phoneNumberId: '1065', accessToken: 'EAAB-token', verifyToken: 'verify-me', appSecret: 'b0a1c2d3' };

let fixture: TestTenants;
let scope: TenantScope;
let folder: string;

beforeEach(async () => {
  fixture = await startTenants();
  scope = await fixture.tenants.create('acme');
  folder = join(fixture.dataDir, 'tenants', 'acme', 'channels');
});
afterEach(async () => fixture[Symbol.asyncDispose]());

async function putFile(name: string, content: unknown): Promise<void> {
  await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
}

async function everyByte(): Promise<string> {
  const names = await readdir(folder);
  return (await Promise.all(names.map(async (name) => readFile(join(folder, name), 'utf8')))).join('\n');
}

describe('a plain file of credentials', () => {
  it.each([
    ['telegram', 'channel_c', telegram],
    ['whatsapp', 'channel_a', whatsapp],
    ['messenger', 'channel_b', { pageId: '4042', accessToken: 'EAAB', verifyToken: 'v', appSecret: 's' }],
    ['slack', 'channel_d', { botToken: 'xoxb', signingSecret: 's', teamId: 'T1', botUserId: 'U1' }],
  ] as const)('%s.json is sealed and removed by the next look', async (app, channel, settings) => {
    await putFile(`${app}.json`, settings);
    expect(await scope.channels.list()).toMatchObject([{ channel, app, state: 'enabled', reason: null }]);
    expect(await readdir(folder)).toEqual([`${channel}.json`]);
    expect(await scope.channels.open(channel)).toEqual(settings);
  });

  it('is taken over by an adapter that opens the binding, too', async () => {
    expect(await scope.channels.open('channel_c')).toBeUndefined();
    await putFile('telegram.json', telegram);
    expect(await scope.channels.open('channel_c')).toEqual(telegram);
    expect(await everyByte()).not.toContain('telegram-token');
  });

  it('replaces the credentials that were there', async () => {
    await scope.channels.connect('channel_c', telegram);
    await putFile('telegram.json', { ...telegram, botToken: '12345:new-token' });
    expect(await scope.channels.open('channel_c')).toMatchObject({ botToken: '12345:new-token' });
  });

  it('that was there before the channel was connected does not win over its binding', async () => {
    await putFile('telegram.json', telegram);
    await scope.channels.connect('channel_c', { ...telegram, botToken: '12345:from-the-api' });
    expect(await scope.channels.open('channel_c')).toMatchObject({ botToken: '12345:from-the-api' });
    expect(await readdir(folder)).toEqual(['channel_c.json']);
  });

  it.each([
    ['lacks a field', { botToken: 'very-secret' }, 'secretToken'],
    ['has one too many', { ...telegram, appSecret: 'very-secret' }, 'appSecret'],
    ['is no JSON', '{"botToken":"very-secret"', 'not JSON'],
    ['is no object', '"very-secret"', 'not the settings of telegram'],
    ['is too large', JSON.stringify({ ...telegram, botToken: 'x'.repeat(70_000) }), '65536 bytes'],
  ])('that %s is left alone, and the view states the reason', async (_, content, why) => {
    await putFile('telegram.json', content);
    const [view] = await scope.channels.list();
    expect(view).toMatchObject({ channel: 'channel_c', state: 'broken', secrets: {} });
    expect(view?.reason).toContain('channels/telegram.json is left alone');
    expect(view?.reason).toContain(why);
    expect(JSON.stringify(view)).not.toContain('very-secret');
    expect(await scope.channels.open('channel_c')).toBeUndefined();
    expect(await readdir(folder)).toEqual(['telegram.json']);
  });

  it('is taken over as soon as it is mended, in place or anew', async () => {
    await putFile('telegram.json', '{');
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'broken' });
    await putFile('telegram.json', telegram);
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'enabled', reason: null });
  });

  it('that is wrong leaves the binding beside it at work', async () => {
    await scope.channels.connect('channel_c', telegram);
    await putFile('telegram.json', '{}');
    expect(await scope.channels.find('channel_c')).toMatchObject({ state: 'enabled', reason: expect.stringContaining('left alone') });
    expect(await scope.channels.open('channel_c')).toEqual(telegram);
  });

  it('goes with the binding when the channel is disconnected', async () => {
    await putFile('telegram.json', '{}');
    await scope.channels.disconnect('channel_c');
    expect(await readdir(folder)).toEqual([]);
    expect(await scope.channels.list()).toEqual([]);
  });

  it('is no link and no folder', async () => {
    await writeFile(join(fixture.dataDir, 'elsewhere.json'), JSON.stringify(telegram));
    await symlink(join(fixture.dataDir, 'elsewhere.json'), join(folder, 'telegram.json'));
    await mkdir(join(folder, 'slack.json'));
    const views = await scope.channels.list();
    expect(views.map(({ reason }) => reason)).toEqual([
      expect.stringContaining('telegram.json is left alone: it is no regular file'),
      expect.stringContaining('slack.json is left alone: it is no regular file'),
    ]);
  });

  it('is taken over once, by however many look at the same time', async () => {
    const others = await Promise.all(Array.from({ length: 4 }, async () => (await fixture.another()).open('acme')));
    await putFile('telegram.json', telegram);
    const opened = await Promise.all([scope, ...others].map(async (each) => each.channels.open('channel_c')));
    expect(opened.filter((settings) => settings !== undefined)).not.toEqual([]);
    expect(await readdir(folder)).toEqual(['channel_c.json']);
    for (const each of [scope, ...others]) expect(await each.channels.open('channel_c')).toEqual(telegram);
  });
});
