import Docker from 'dockerode';
import { describe, expect, it } from '@jest/globals';
import { canRunDocker } from '@concierge/testing';
import { DockerSandboxes } from '../src/docker/index.ts';
import { SandboxUnavailable } from '../src/index.ts';
import { describeConformance } from './conformance.ts';
import { bash, newMarker, Workspaces } from './workspaces.ts';

const engine = new Docker();

async function findContainers(deployment: string): Promise<Docker.ContainerInfo[]> {
  return engine.listContainers({ all: true, filters: { label: [`concierge.deployment=${deployment}`] } });
}

(canRunDocker() ? describe : describe.skip)('sandboxes by Docker', () => {
  describeConformance({ kind: 'docker', make: (options) => new DockerSandboxes(options) });

  describe('containers', () => {
    it('are made with the first command, used by the next ones and removed at the end', async () => {
      await using workspaces = await Workspaces.make();
      const deployment = newMarker();
      const request = workspaces.request();
      {
        await using sandbox = new DockerSandboxes({ deployment }).open(request);
        expect(await findContainers(deployment)).toEqual([]);
        await bash(sandbox, 'true');
        const [made] = await findContainers(deployment);
        expect(made?.Labels).toMatchObject({
          'concierge.tenant': 'acme',
          'concierge.turn': request.turnId,
          'concierge.owner': request.ownerId,
        });
        await bash(sandbox, 'true');
        expect((await findContainers(deployment)).map(({ Id }) => Id)).toEqual([made?.Id]);
      }
      expect(await findContainers(deployment)).toEqual([]);
    });

    it('are removed when their owner is gone or from an earlier run; only their own deployment reaps them', async () => {
      await using workspaces = await Workspaces.make();
      const deployment = newMarker();
      const earlier = new DockerSandboxes({ deployment });
      const now = new DockerSandboxes({ deployment });
      const open = async (sandboxes: DockerSandboxes, ownerId: string) => {
        const sandbox = sandboxes.open(workspaces.request({ ownerId }));
        await bash(sandbox, 'true');
        return sandbox;
      };
      await using gone = await open(earlier, 'gone');
      await using living = await open(earlier, 'living');
      await using before = await open(earlier, 'me');
      await using mine = await open(now, 'me');
      expect(await new DockerSandboxes({ deployment: newMarker() }).reap(async () => Promise.resolve(false))).toBe(0);
      const asked: string[] = [];
      const removed = await now.reap(async (ownerId) => {
        asked.push(ownerId);
        return Promise.resolve(ownerId === 'living');
      });
      expect(removed).toBe(2);
      expect(asked.toSorted()).toEqual(['gone', 'living']);
      const left = (await findContainers(deployment)).map(({ Labels }) => Labels['concierge.owner'] ?? '');
      expect(left.toSorted()).toEqual(['living', 'me']);
      expect((await bash(gone, 'echo on')).output).toBe('on\n');
      expect((await bash(living, 'echo on')).output).toBe('on\n');
      expect((await bash(before, 'echo on')).output).toBe('on\n');
      expect((await bash(mine, 'echo on')).output).toBe('on\n');
    });

    it('are mounted from where the data directory is for the engine', async () => {
      await using workspaces = await Workspaces.make();
      const dataFolder = { here: '/inside/data', onHost: workspaces.path };
      const root = '/inside/data/tenants/acme';
      const sandboxes = new DockerSandboxes({ deployment: newMarker(), dataFolder });
      // The worker's own view of the folder is needed as well; here it has none.
      await using sandbox = sandboxes.open(workspaces.request({ root }));
      await expect(bash(sandbox, 'true')).rejects.toThrow('The workspace is not there.');
    });

    it('cannot be made without their image, and the error names it', async () => {
      await using workspaces = await Workspaces.make();
      const sandboxes = new DockerSandboxes({ deployment: newMarker(), image: 'concierge-no-such-image' });
      await expect(sandboxes.check()).rejects.toThrow('The container engine has no image concierge-no-such-image.');
      await using sandbox = sandboxes.open(workspaces.request());
      await expect(bash(sandbox, 'true')).rejects.toThrow(SandboxUnavailable);
    });
  });
});
