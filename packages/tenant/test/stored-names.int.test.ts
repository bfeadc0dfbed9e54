import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { ChannelMessage } from '@concierge/contract';
import { FolderSync } from '@concierge/files';
import { Handoffs } from '../src/contacts/handoffs.ts';
import { Inbox } from '../src/inbox/inbox.ts';
import { SessionCache, SessionStore } from '../src/sessions/session-store.ts';
import { acceptedTurn, newSession, newSessionId, silentLog, temporaryFolder } from './support.ts';

const address = { to: '491', thread: '7' };
const channelMessage: ChannelMessage = { address, isGroup: true, messageRef: 'm', media: [], replyTo: null };
const shared = { folders: new FolderSync(), tenantId: 'acme', log: silentLog };

const readStored = async (...path: readonly string[]): Promise<unknown> => JSON.parse(await readFile(join(...path), 'utf8'));

describe('files of earlier versions keep their names of fields', () => {
  it('in the inbox: the tenant is accountId, the message of a channel is chatApp', async () => {
    await using folder = await temporaryFolder();
    const inbox = new Inbox({ ...shared, folder: folder.path });
    const turn = { ...acceptedTurn('turn-1'), channelMessage };
    await inbox.accept(turn);
    const { tenantId, channelMessage: _message, ...others } = turn;
    expect(await readStored(folder.path, 'turn-1.json')).toEqual({ ...others, accountId: tenantId, chatApp: channelMessage });
    expect(await inbox.read('turn-1')).toEqual(turn);
  });

  it('in a session: the address of its last message is chatApp', async () => {
    await using folder = await temporaryFolder();
    const open = (): SessionStore => new SessionStore({ ...shared, folder: folder.path, cache: new SessionCache() });
    const session = { ...newSession(newSessionId()), channelAddress: address };
    await open().publish(session);
    const { channelAddress: _address, ...others } = session;
    expect(await readStored(folder.path, `${session.id}.json`)).toEqual({ ...others, chatApp: address });
    expect(await open().load(session.id)).toMatchObject({ channelAddress: address });
  });

  it('in the call of a handoff: the address of the contact is chatApp', async () => {
    await using folder = await temporaryFolder();
    const handoffs = new Handoffs({ ...shared, folder: folder.path });
    const call = { agent: 'cs', channel: 'channel_c', sender: '491', lastWords: 'hi', callsOwner: true } as const;
    const by = { kind: 'operator' } as const;
    await handoffs.request(newSessionId(), { reason: 'Refund.', by, call: { ...call, channelAddress: address } });
    const [name = ''] = await readdir(join(folder.path, 'calls'));
    expect(await readStored(folder.path, 'calls', name)).toMatchObject({ ...call, chatApp: address });
    expect(await handoffs.pending()).toMatchObject([{ ...call, channelAddress: address }]);
  });
});
