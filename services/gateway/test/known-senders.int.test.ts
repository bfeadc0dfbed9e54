import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HOUR_MS } from '@concierge/contract';
import { toContactFolder, type TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log, TestTenants } from '@concierge/testing';
import { setUpEach } from '@concierge/testing/set-up';
import { describe, expect, it, jest } from '@jest/globals';
import { ChannelActivity } from '../src/inbound/channel-activity.ts';
import { SenderIdentity } from '../src/inbound/sender-identity.ts';

let scope: TenantScope;

setUpEach(async (stack) => {
  scope = await stack.use(await TestTenants.start()).scope();
  stack.defer(() => {
    jest.restoreAllMocks();
  });
});

/** As another process does when it erases a contact. */
async function removeFolders(senders: readonly string[]): Promise<void> {
  for (const sender of senders) await rm(join(scope.root, 'contacts', toContactFolder(sender)), { recursive: true });
}

function passAnHour(): void {
  const now = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => now() + HOUR_MS);
}

describe('a contact who was erased and writes again', () => {
  it('has a name again', async () => {
    const activity = new ChannelActivity(log);
    const findName = async (): Promise<string | null | undefined> => (await scope.contacts.find('4242'))?.displayName;
    const write = async (): Promise<string | null | undefined> => {
      activity.displayName({ scope, channel: 'channel_c' }, '4242', 'Ann');
      return findName();
    };
    await eventually(write);
    await removeFolders(['4242']);
    expect(await findName()).toBeUndefined();
    passAnHour();
    expect(await eventually(write)).toBe('Ann');
  });

  it('is known by both ids again', async () => {
    const identity = new SenderIdentity();
    const sender = { id: 'DE.1', aliases: ['491511'], displayName: null, isExternal: false };
    const conversation = { id: 'DE.1', threadId: null, isGroup: false };
    const findMain = async (): Promise<string> => scope.contacts.findCanonicalSender('channel_a', '491511');
    const write = async (): Promise<boolean> => {
      await identity.findSender({ scope, channel: 'channel_a' }, { sender, conversation });
      return (await findMain()) === 'DE.1';
    };
    expect(await write()).toBe(true);
    await removeFolders(['DE.1', '491511']);
    expect(await findMain()).toBe('491511');
    passAnHour();
    expect(await eventually(write)).toBe(true);
  });
});
