import { BubblewrapSandboxes } from '../src/bubblewrap/index.ts';
import { DockerSandboxes } from '../src/docker/index.ts';
import type { Sandboxes } from '../src/index.ts';
import type { OwnerTask } from './owner-process.ts';
import { bash } from './workspaces.ts';

function make({ kind, deployment }: OwnerTask): Sandboxes {
  return kind === 'docker' ? new DockerSandboxes({ deployment }) : new BubblewrapSandboxes({ deployment });
}

async function main(task: OwnerTask): Promise<void> {
  await using sandbox = make(task).open(task.request);
  await Promise.all(
    task.lines.map(async (line) => {
      const { end, output } = await bash(sandbox, line, { timeoutMs: 600_000 });
      process.stdout.write(`${JSON.stringify({ end, output })}\n`);
    }),
  );
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the test that starts this
await main(JSON.parse(process.argv[2] ?? '') as OwnerTask);
