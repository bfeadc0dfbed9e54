import { describe, expect, it } from '@jest/globals';
import { chown } from 'node:fs/promises';
import { canRunBubblewrap } from '@concierge/testing';
import { BubblewrapSandboxes } from '../src/bubblewrap/index.ts';
import { describeConformance } from './conformance.ts';
import { OwnerProcess } from './owner-process.ts';
import { bash, newMarker, secret, Workspaces } from './workspaces.ts';

const ordinary = { uid: 12_345, gid: 12_345 };

(canRunBubblewrap() ? describe : describe.skip)('sandboxes by bubblewrap', () => {
  describeConformance({ kind: 'bubblewrap', make: (options) => new BubblewrapSandboxes(options) });

  it('opens no socket that knows no namespaces', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = new BubblewrapSandboxes({ deployment: newMarker() }).open(workspaces.request());
    const [vsock, crypto] = [40, 38].map((family) => `perl -e 'exit !socket(S, ${String(family)}, 5, 0)' && echo opened`);
    expect((await bash(sandbox, `${vsock ?? ''}; ${crypto ?? ''}; true`)).output).toBe('');
  });

  describe('for a worker that is an ordinary user', () => {
    const user = process.getuid?.() === 0 ? ordinary : undefined;

    it('keeps in, limits and shares /tmp just the same', async () => {
      await using workspaces = await Workspaces.make();
      if (user !== undefined)
        for (const name of ['.', 'notes', 'sessions', 'keys', 'tenant.json', 'skills'])
          await chown(`${workspaces.root}/${name}`, user.uid, user.gid);
      const lines = [
        'id -u; touch made; until [ -e /tmp/met ]; do sleep 0.05; done; echo met',
        'touch /tmp/met; cat tenant.json sessions/secret.md; rm -rf sessions 2>/dev/null; true',
        'unshare --user true || mount -t tmpfs none /tmp || touch /x || touch /dev/x || echo refused',
        `perl -e '$n = 0; while (defined($p = fork)) { if (!$p) { sleep 600; exit } $n++ } print $n > 10 && $n <= 256 ? "bounded" : $n'`,
        `perl -e '$x = "x" x (2 * 1024 * 1024 * 1024); print "held"'`,
        `for i in 1 2 3 4; do perl -e '$x = "x" x (400 * 1024 * 1024); sleep 60' & done; wait`,
      ];
      await using owner = new OwnerProcess({ kind: 'bubblewrap', deployment: newMarker(), request: workspaces.request(), lines }, user);
      const said = (await owner.results()).join('\n');
      expect(said).not.toContain(secret);
      expect(said).toContain(String.raw`"output":"${String(user?.uid ?? process.getuid?.())}\nmet\n"`);
      expect(said).toContain(String.raw`refused\n`);
      expect(said).toContain('"output":"bounded"');
      expect(said).not.toContain('held');
      expect(said).toContain('"kind":"out_of_memory"');
    });
  });
});
