import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { TenantScope } from '../src/tenant-scope.ts';
import { acceptedTurn, newSession, newSessionId, startTenants } from './support.ts';

const contact = 'somebody@example.com';

/** One write to each store of a tenant. */
const writes: Readonly<Record<string, (scope: TenantScope) => Promise<unknown>>> = {
  inbox: async ({ inbox }) => inbox.accept(acceptedTurn('t_1')),
  'inbox, for an id that was drawn': async ({ inbox }) => inbox.accept(acceptedTurn('t_2'), { isUnique: true }),
  'inbox, the wish to cancel a turn that is in a log': async ({ inbox }) => inbox.markCancelled('t_3'),
  'inbox, the journal of such a turn': async ({ inbox }) => inbox.appendJournal('t_3', [{ kind: 'intent', callId: 'c', name: 'bash' }]),
  sessions: async ({ sessions }) => sessions.publish(newSession(newSessionId())),
  keys: async ({ keys }) => keys.create({ scopes: ['cs'] }, ['admin']),
  channels: async ({ channels }) => channels.connect('channel_c', { botToken: 'token', secretToken: 'hook' }),
  'channels, when something came in': async ({ channels }) => channels.note('channel_c', 'inbound'),
  widget: async ({ widget }) => widget.rotateKey(),
  handoffs: async ({ handoffs }) => handoffs.request(newSessionId(), { reason: 'asked', by: { kind: 'operator' } }),
  outbox: async ({ outbox }) =>
    outbox.accept({
      kind: 'message',
      channel: 'channel_c',
      to: '4242',
      sessionId: newSessionId(),
      text: 'Hi',
      agent: 'admin',
      turnId: 't',
      callId: 'c',
    }),
  events: async ({ events }) => events.endpoints.create({ url: 'https://example.com/' }),
  mcp: async ({ mcp }) =>
    mcp.put('shop', { url: 'https://example.com/', headers: {}, agents: ['admin'], tools: null, timeoutMs: 1000, enabled: true }),
  cron: async ({ schedules }) =>
    schedules.create({ name: 'Report', message: 'Go.', schedule: { every: '1h' } }, { by: { kind: 'operator' }, authority: 'admin' }),
  contacts: async ({ contacts }) => contacts.remember({ sender: contact, displayName: 'Bob' }),
  'contacts, a note': async ({ memory }) => memory.forContact(contact).write({ text: 'Likes tea.' }),
  memory: async ({ memory }) => memory.write({ text: 'Open on Monday.', title: 'Hours' }),
  uploads: async ({ uploads }) => uploads.save({ name: 'a.txt', type: 'text/plain', bytes: Buffer.from('x') }),
  settings: async (scope) => scope.updateSettings({ name: 'Acme' }),
};

describe('a tenant whose empty folders a backup has dropped', () => {
  it.each(Object.entries(writes))('takes what is written to %s', async (_, write) => {
    await using world = await startTenants();
    const { root } = await world.tenants.create('acme');
    for (const name of await readdir(root, { withFileTypes: true })) {
      if (name.isDirectory() && name.name !== 'settings') await rm(join(root, name.name), { recursive: true });
    }
    await write(await (await world.another()).open('acme'));
    expect(JSON.parse(await readFile(join(root, 'tenant.json'), 'utf8'))).toMatchObject({ plan: 'standard' });
  });
});

describe('what is still being written for a tenant that has been deleted', () => {
  it.each(Object.entries(writes))('does not bring its folder back: %s', async (_, write) => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await world.tenants.delete('acme');
    await Promise.allSettled([write(scope)]);
    expect(await readdir(join(world.dataDir, 'tenants'))).toEqual([]);
  });

  it('is refused by a process that knew the tenant before another one deleted it', async () => {
    await using world = await startTenants();
    await world.tenants.create('acme');
    const other = await world.another();
    await other.open('acme');
    await world.tenants.delete('acme');
    await expect(other.open('acme')).rejects.toMatchObject({ code: 'not_found' });
    expect(await other.find('acme')).toBeUndefined();
  });
});
