import { chown, chmod, mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import type { Side } from './side.ts';
import { bash, newMarker, secret, Workspaces } from '../workspaces.ts';

export function workspaceCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('covers what is masked against reading, changing, moving and removing', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { output } = await bash(
      sandbox,
      `
      ls -A sessions keys; cat sessions/secret.md; cat tenant.json
      echo mine > sessions/secret.md; echo mine > keys/mine; echo '{}' > tenant.json; echo '{}' >> tenant.json
      mv sessions gone; mv tenant.json gone; rm -rf sessions keys; rm -f tenant.json; ln -sf notes sessions; mv -T notes sessions; cp notes/today.md tenant.json
      chmod 777 sessions; ln tenant.json linked; ln -f notes/today.md tenant.json
      true`,
    );
    expect(output).not.toContain(secret);
    expect(await workspaces.read('sessions', 'secret.md')).toBe(secret);
    expect(await workspaces.read('tenant.json')).toContain(secret);
    expect(await readdir(join(workspaces.root, 'keys'))).toEqual([]);
    expect((await readdir(workspaces.root)).toSorted()).toEqual(['keys', 'notes', 'sessions', 'skills', 'tenant.json']);
  });

  it('covers a folder that is not there yet, so that a command cannot make one', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request({ masked: ['sessions', 'cron', 'missing.json'] }));
    await bash(sandbox, 'mkdir cron; echo planted > cron/job.json; mv notes cron; ln -sfn /etc cron');
    expect(await readdir(join(workspaces.root, 'cron'))).toEqual([]);
    await expect(workspaces.read('missing.json')).rejects.toThrow('ENOENT');
  });

  it('covers a masked file again when it has been replaced from outside', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    await bash(sandbox, 'true');
    await workspaces.write('new.json', JSON.stringify({ secret }));
    await chmod(join(workspaces.root, 'new.json'), 0o644);
    await rename(join(workspaces.root, 'new.json'), join(workspaces.root, 'tenant.json'));
    expect((await bash(sandbox, 'cat tenant.json; echo x > tenant.json; rm -f tenant.json')).output).not.toContain(secret);
    expect(await workspaces.read('tenant.json')).toContain(secret);
  });

  it('lets what is read-only be read and not changed', async () => {
    await using workspaces = await Workspaces.make();
    await workspaces.write('AGENTS.md', 'rules\n');
    await using sandbox = sandboxes.open(workspaces.request({ readOnly: ['skills', 'AGENTS.md', 'not-there'] }));
    expect((await bash(sandbox, 'cat skills/SKILL.md AGENTS.md')).output).toBe('a skill\nrules\n');
    await bash(
      sandbox,
      'echo x > skills/SKILL.md; rm -rf skills; mv skills away; touch skills/new; echo x > AGENTS.md; rm -f AGENTS.md; mv notes/today.md AGENTS.md',
    );
    expect(await workspaces.read('skills', 'SKILL.md')).toBe('a skill\n');
    expect(await readdir(join(workspaces.root, 'skills'))).toEqual(['SKILL.md']);
    expect(await workspaces.read('AGENTS.md')).toBe('rules\n');
  });

  it('gives each tenant a user of its own where the worker is root, also those that shared one before', async () => {
    await using workspaces = await Workspaces.make();
    const isRoot = process.getuid?.() === 0;
    if (isRoot) for (const path of [workspaces.other, join(workspaces.other, 'notes')]) await chown(path, 10_001, 10_001);
    await using sandbox = sandboxes.open(workspaces.request());
    await using neighbour = sandboxes.open(workspaces.request({ tenantId: 'other', root: workspaces.other }));
    const users = [(await bash(sandbox, 'id -u')).output, (await bash(neighbour, 'touch notes/new; id -u')).output];
    expect(new Set([...users, '10001\n', '0\n'])).toHaveProperty('size', isRoot ? 4 : 3);
    expect(String((await stat(join(workspaces.other, 'notes', 'new'))).uid)).toBe(users[1]?.trim());
  });

  it('lets both sides change what the other one made', async () => {
    await using workspaces = await Workspaces.make();
    await mkdir(join(workspaces.root, 'reports', 'old'), { recursive: true });
    await writeFile(join(workspaces.root, 'reports', 'old', 'a.txt'), 'host', { mode: 0o644 });
    await using sandbox = sandboxes.open(workspaces.request());
    const inside =
      'echo " and sandbox" >> reports/old/a.txt; mkdir reports/new; echo sandbox > reports/new/b.txt; mv reports/old reports/older; rm notes/today.md; touch top';
    expect(await bash(sandbox, inside)).toMatchObject({ end: { kind: 'exited', exitCode: 0 }, output: '' });
    expect(await workspaces.read('reports', 'older', 'a.txt')).toBe('host and sandbox\n');
    await writeFile(join(workspaces.root, 'reports', 'new', 'b.txt'), 'host');
    await rename(join(workspaces.root, 'top'), join(workspaces.root, 'reports', 'new', 'top'));
    const [owner, made] = [await stat(workspaces.root), await stat(join(workspaces.root, 'reports', 'new', 'top'))];
    expect([made.uid, made.gid]).toEqual([owner.uid, owner.gid]);
    expect(owner.uid).not.toBe(0);
    expect((await bash(sandbox, 'id -u; cat reports/new/b.txt')).output).toBe(`${String(owner.uid)}\nhost`);
    expect((await stat(join(workspaces.root, 'sessions', 'secret.md'))).uid).toBe(process.getuid?.());
  });
}
