import { expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';
import { SandboxUnavailable } from '../../src/index.ts';
import type { Side } from './side.ts';
import { OwnerProcess } from '../owner-process.ts';
import { bash, newMarker, processesNamed, sleeper, Workspaces } from '../workspaces.ts';

const kills = 3;

export function leftOverCases(side: Side): void {
  it('ends what still runs with the sandbox, and runs nothing in it afterwards', async () => {
    await using workspaces = await Workspaces.make();
    const sandbox = side.make({ deployment: newMarker() }).open(workspaces.request());
    const marker = newMarker();
    const run = bash(sandbox, `setsid ${sleeper(marker)} & sleep 600`);
    await eventually(() => processesNamed(marker).length === 1);
    await sandbox[Symbol.asyncDispose]();
    expect((await run).end).toEqual({ kind: 'stopped' });
    expect(processesNamed(marker)).toEqual([]);
    await expect(bash(sandbox, 'true')).rejects.toThrow(SandboxUnavailable);
  });

  it('leaves no process of a worker that is killed in the middle of commands', async () => {
    await using workspaces = await Workspaces.make();
    const deployment = newMarker();
    for (let kill = 0; kill < kills; kill += 1) {
      const marker = newMarker();
      const lines = [`setsid ${sleeper(marker)} & sleep 600`, `exec -a ${marker} sleep 600`];
      await using owner = new OwnerProcess({ kind: side.kind, deployment, request: workspaces.request(), lines });
      await eventually(() => processesNamed(marker).length === lines.length);
      await owner.kill();
      await eventually(() => processesNamed(marker).length === 0);
    }
    const sandboxes = side.make({ deployment });
    await sandboxes.reap(async () => Promise.resolve(false));
    expect(await sandboxes.reap(async () => Promise.resolve(false))).toBe(0);
  });

  it('leaves no process of a worker that is killed while it makes a sandbox', async () => {
    await using workspaces = await Workspaces.make();
    const deployment = newMarker();
    const marker = newMarker();
    for (let kill = 0; kill < kills; kill += 1) {
      const lines = [`exec -a ${marker} sleep 600`];
      await using owner = new OwnerProcess({
        kind: side.kind,
        deployment,
        request: workspaces.request({ masked: ['sessions', `made-${String(kill)}`] }),
        lines,
      });
      // A masked folder that was missing is there: the worker is about to make the sandbox.
      await eventually(async () => (await workspaces.names()).includes(`made-${String(kill)}`));
      await owner.kill();
    }
    const sandboxes = side.make({ deployment });
    // A request that the engine had already been given when its sender died may still bring forth a container.
    await eventually(async () => (await sandboxes.reap(async () => Promise.resolve(false))) === 0 && processesNamed(marker).length === 0);
    expect(processesNamed(marker)).toEqual([]);
  });
}
