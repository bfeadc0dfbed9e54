import { once } from 'node:events';
import { readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it } from '@jest/globals';
import { SandboxUnavailable } from '../../src/index.ts';
import type { Side } from './side.ts';
import { bash, newMarker, secret, Workspaces } from '../workspaces.ts';

const racedRuns = { docker: 6, bubblewrap: 40 } as const;

/** Folders of the workspace become links out of it and folders again, until the end of the scope. */
async function swapNames({ root, outside }: Workspaces): Promise<AsyncDisposable> {
  const swapper = new Worker(new URL('../name-swapper.ts', import.meta.url), {
    argv: [root, outside, 'skills', 'cron'],
    execArgv: ['--conditions=@concierge/source'],
  });
  const exited = once(swapper, 'exit');
  await once(swapper, 'message');
  return {
    [Symbol.asyncDispose]: async () => {
      swapper.postMessage('stop');
      await exited;
    },
  };
}

export function linkCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('leaves alone a link that stands where something is to be covered', async () => {
    await using workspaces = await Workspaces.make();
    for (const name of ['sessions', 'skills']) {
      await rm(join(workspaces.root, name), { recursive: true });
      await symlink(workspaces.outside, join(workspaces.root, name));
    }
    await using sandbox = sandboxes.open(workspaces.request({ readOnly: ['skills'] }));
    const { output } = await bash(sandbox, 'cat sessions/secret.md skills/secret.md; true');
    expect(output).not.toContain(secret);
    expect(await readdir(workspaces.outside)).toEqual(['secret.md']);
  });

  it('never shows what is behind a link, however names are swapped meanwhile', async () => {
    await using workspaces = await Workspaces.make();
    await using swapper = await swapNames(workspaces);
    let ran = 0;
    // Until one got through, too: a sandbox that never runs shows nothing either.
    for (let run = 0; run < racedRuns[side.kind] || (ran === 0 && run < 20 * racedRuns[side.kind]); run += 1) {
      await using sandbox = sandboxes.open(workspaces.request({ masked: ['sessions', 'cron', 'tenant.json'], readOnly: ['skills'] }));
      const result = await bash(sandbox, 'cat skills/secret.md cron/secret.md sessions/secret.md; echo ran').catch((error: unknown) => {
        if (error instanceof SandboxUnavailable) return undefined;
        throw error;
      });
      if (result?.output.includes('ran') === true) ran += 1;
      expect(result?.output ?? '').not.toContain(secret);
    }
    await swapper[Symbol.asyncDispose]();
    expect(ran).toBeGreaterThan(0);
    expect(await readdir(workspaces.outside)).toEqual(['secret.md']);
  });
}
