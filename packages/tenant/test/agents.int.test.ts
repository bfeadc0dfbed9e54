import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { deriveSessionId } from '../src/sessions/session-ids.ts';
import type { TenantScope } from '../src/tenant-scope.ts';
import { newSession, startTenants } from './support.ts';

const text = (front: string, body = 'You sell.\n'): string => `---\n${front}\n---\n${body}`;

async function reasons(scope: TenantScope): Promise<Record<string, string>> {
  const { invalid } = await scope.agents.scan();
  return Object.fromEntries(invalid.map(({ path, reason }) => [path, reason]));
}

describe('agents of a tenant’s own', () => {
  it('are files with front matter and a body', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    expect(await scope.agents.scan()).toEqual({ valid: [], invalid: [] });
    const front = 'description: Sells\n  shoes\ntools: [read, status]\nmodel: a/b\nmaxTurns: 5\npublic: true';
    await scope.files.writeText('agents/sales.md', text(front));
    await scope.files.writeText('agents/ops.md', text('description: Keeps things running', '\n# Ops\n\n'));
    await scope.files.writeText('agents/README.txt', 'no agent');
    const { valid, invalid } = await scope.agents.scan();
    expect(invalid).toEqual([]);
    expect(valid).toEqual([
      { name: 'ops', description: 'Keeps things running', access: 'admin', body: '# Ops' },
      { name: 'sales', description: 'Sells shoes', access: 'cs', tools: ['read', 'status'], model: 'a/b', maxTurns: 5, body: 'You sell.' },
    ]);
    expect(await scope.agents.find('sales')).toEqual({ agent: valid[1] });
  });

  it('are as their files are at the moment of asking', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    for (const round of [1, 2, 3]) {
      await scope.files.writeText('agents/sales.md', text(`description: round ${String(round)}`));
      expect(await scope.agents.find('sales')).toMatchObject({ agent: { description: `round ${String(round)}` } });
    }
    await scope.files.remove('agents/sales.md');
    expect(await scope.agents.find('sales')).toBeUndefined();
    expect((await scope.agents.scan()).valid).toEqual([]);
  });

  it('leave the conversations of a contact to it, and the notes about it, when their files are removed', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('agents/booker.md', text('description: Books\npublic: true'));
    const [booked, asked] = ['booker', 'cs'].map((agent) => deriveSessionId(agent, 'web', 'ann'));
    await scope.sessions.publish(newSession(booked ?? '', { agent: 'booker', sender: 'ann' }));
    await scope.sessions.publish(newSession(asked ?? '', { agent: 'cs', sender: 'ann' }));
    await scope.reindex();
    const notes = scope.memory.forContact('ann');
    await notes.write({ title: 'Habits', text: 'Comes on Mondays.' });
    await scope.files.remove('agents/booker.md');
    expect(await scope.removeSession(asked ?? '')).toBe(true);
    expect((await scope.contacts.find('ann'))?.conversations).toMatchObject([{ sessionId: booked, agent: 'booker' }]);
    expect(await notes.list()).toHaveLength(1);
  });

  it('are reported with a reason when they cannot be used', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await writeFile(join(world.dataDir, 'outside.md'), text('description: of another'));
    await symlink(join(world.dataDir, 'outside.md'), join(scope.root, 'agents', 'link.md'));
    await writeFile(join(scope.root, 'agents', 'bytes.md'), Buffer.from([0xff, 0xfe]));
    const files = {
      admin: text('description: x'),
      cs: text('description: x'),
      Loud: text('description: x'),
      typo: text('description: x\ntool: [read]'),
      tools: text('description: x\ntools: [raed]'),
      none: 'no front matter',
      code: '---js\n{}\n---\n',
      fine: text('description: x'),
    };
    for (const [name, content] of Object.entries(files)) await writeFile(join(scope.root, 'agents', `${name}.md`), content);
    expect(await reasons(scope)).toEqual({
      'agents/admin.md': 'the name admin belongs to a built-in agent',
      'agents/cs.md': 'the name cs belongs to a built-in agent',
      'agents/Loud.md': expect.stringContaining('lower-case letters'),
      'agents/typo.md': expect.stringMatching(/^front matter: .*tool/u),
      'agents/tools.md': expect.stringContaining('tools.0: is not the name of a tool'),
      'agents/none.md': expect.stringContaining('description'),
      'agents/code.md': expect.stringContaining('front matter'),
      'agents/link.md': expect.any(String),
      'agents/bytes.md': expect.any(String),
    });
    expect((await scope.agents.scan()).valid.map(({ name }) => name)).toEqual(['fine']);
    expect(await scope.agents.find('typo')).toMatchObject({ reason: expect.stringContaining('front matter') });
  });

  it('are none where the name is a built-in one or no name at all, whatever file there is', async () => {
    await using world = await startTenants();
    const scope = await world.tenants.create('acme');
    await scope.files.writeText('agents/admin.md', text('description: x\npublic: true'));
    for (const name of ['admin', 'cs', '../SOUL', 'a/b', 'A', '']) expect(await scope.agents.find(name)).toBeUndefined();
  });
});
