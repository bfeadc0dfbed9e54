import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { temporaryDirectory } from '@concierge/testing';
import { Tenants, unknownOutcome } from '../src/index.ts';

const log = createLog({ service: 'test', level: 'silent' });
const id = 'a'.repeat(32);
const at = '2026-11-20T08:00:00.000Z';

describe('a session file that holds a call without a result', () => {
  it('is loaded with the call closed, right behind the message that made it', async () => {
    await using folder = await temporaryDirectory();
    const index = await openIndex({ databaseUrl: undefined, dataDir: folder.path, log });
    const scope = await new Tenants({ dataDir: folder.path, index, keySecret: 'k'.repeat(32), log }).create('acme');
    const base = { turnId: 't_1', at };
    const messages = [
      { ...base, id: 'm1', role: 'user', text: 'hi', sent: 'hi' },
      { ...base, id: 'm2', role: 'assistant', text: '', toolCalls: [{ id: 'c1', name: 'read', arguments: '{}' }] },
      { ...base, id: 'm3', role: 'user', text: 'still there?', sent: 'still there?' },
    ];
    const facts = { version: 1, id, agent: 'admin', channel: 'web', sender: null, revision: 4, createdAt: at, updatedAt: at, title: 'hi' };
    const file = { ...facts, messageCount: 3, summary: null, messages, turns: [], contextTokens: null };
    const sessions = join(folder.path, 'tenants', 'acme', 'sessions');
    await mkdir(sessions, { recursive: true });
    await writeFile(join(sessions, `${id}.json`), JSON.stringify(file));
    for (const look of ['from a view alone', 'from its revision']) {
      const loaded = await scope.sessions.load(id);
      expect([look, loaded?.messages.map(({ role }) => role)]).toEqual([look, ['user', 'assistant', 'tool', 'user']]);
      expect(loaded?.messages[2]).toMatchObject({ callId: 'c1', output: unknownOutcome, isError: true });
    }
    await index.close();
  });
});
