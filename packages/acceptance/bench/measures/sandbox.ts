import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sandbox, Sandboxes } from '@concierge/sandbox';
import { BubblewrapSandboxes } from '@concierge/sandbox/bubblewrap';
import { DockerSandboxes } from '@concierge/sandbox/docker';
import { temporaryDirectory } from '@concierge/testing';
import { percentile } from '../bench.ts';
import { ratioRow, type Bound, type Row } from '../row.ts';
import { RawBubblewrap, RawContainer, timeDockerRun, type RawWorkspace } from '../sandbox/raw-sandboxes.ts';

const FIRST_COMMANDS = 20;
const FOLLOWING_COMMANDS = 60;
/** Rounds before measuring: programs and layers are read from disk once. */
const WARM_UPS = 3;
const COMMAND_TIMEOUT_MS = 60_000;
const IMAGE = 'concierge-sandbox';
const argv = ['true'] as const;
const masked = ['sessions', 'inbox', 'channels'] as const;

type Time = () => Promise<number>;

/** What one adapter is measured against. */
interface Side {
  readonly sandboxes: Sandboxes;
  readonly bound: Bound;
  readonly first: { readonly name: string; readonly time: Time };
  /** Made before it is needed and disposed after. */
  readonly following: { readonly name: string; open(): Promise<AsyncDisposable & { readonly time: Time }> };
}

/** The first and the following command of a turn, by turns with the raw commands of the same image and walls. */
export async function measureSandbox(): Promise<Row[]> {
  await using folder = await temporaryDirectory();
  const root = join(folder.path, 'tenant');
  for (const name of masked) await mkdir(join(root, name), { recursive: true });
  const rows: Row[] = [];
  for (const makeSide of [dockerSide, bubblewrapSide]) {
    const side = await makeSide(root);
    await side.sandboxes.check();
    rows.push(await measureFirst(side, root), await measureFollowing(side, root));
    await side.sandboxes.close();
  }
  return rows;
}

async function dockerSide(root: string): Promise<Side> {
  const sandboxes = new DockerSandboxes({ deployment: root, image: IMAGE });
  const workspace = await openWorkspace(sandboxes, root);
  return {
    sandboxes,
    bound: { atMost: 1.15 },
    first: { name: 'docker run', time: async () => timeDockerRun(IMAGE, workspace, argv) },
    following: {
      name: 'docker exec',
      open: async () => {
        const container = await RawContainer.start(IMAGE, workspace);
        return { time: async () => container.time(argv), [Symbol.asyncDispose]: async () => container[Symbol.asyncDispose]() };
      },
    },
  };
}

async function bubblewrapSide(root: string): Promise<Side> {
  const sandboxes = new BubblewrapSandboxes({ deployment: root });
  const { uid, gid } = await openWorkspace(sandboxes, root);
  const plan = {
    workspace: { root, owner: { uid, gid }, maskedFolders: masked, maskedFiles: [], readOnly: [] },
    dispatcherFolder: undefined,
    cwd: '/workspace',
    asRoot: process.getuid?.() === 0,
    filtersCalls: true,
  };
  const raw = await RawBubblewrap.prepare(plan, join(root, '..', 'raw'));
  const time: Time = async () => raw.time(argv);
  return {
    sandboxes,
    bound: { atMost: 1.5 },
    first: { name: 'bwrap', time },
    following: { name: 'bwrap', open: async () => Promise.resolve({ time, [Symbol.asyncDispose]: async () => Promise.resolve() }) },
  };
}

/** The first sandbox over a folder may hand it over to another user: the raw commands run as that one, too. */
async function openWorkspace(sandboxes: Sandboxes, root: string): Promise<RawWorkspace> {
  await using sandbox = open(sandboxes, root);
  await timeCommand(sandbox);
  const { uid, gid } = await stat(root);
  return { root, uid, gid };
}

async function measureFirst({ sandboxes, bound, first }: Side, root: string): Promise<Row> {
  const product: Time = async () => {
    await using sandbox = open(sandboxes, root);
    return await timeCommand(sandbox);
  };
  const { raw, ours } = await byTurns(first.time, product, FIRST_COMMANDS);
  const measured = { measure: `first command of a turn, ${sandboxes.kind}, p50`, unit: 'ms', product: ours };
  return ratioRow(measured, { name: first.name, value: raw }, bound);
}

async function measureFollowing({ sandboxes, bound, following }: Side, root: string): Promise<Row> {
  await using raw = await following.open();
  await using sandbox = open(sandboxes, root);
  await timeCommand(sandbox);
  const medians = await byTurns(raw.time, async () => timeCommand(sandbox), FOLLOWING_COMMANDS);
  const measured = { measure: `following command, ${sandboxes.kind}, p50`, unit: 'ms', product: medians.ours };
  return ratioRow(measured, { name: following.name, value: medians.raw }, bound);
}

/** Runs both alternately, so that other load on the machine slows both. */
async function byTurns(raw: Time, ours: Time, times: number): Promise<{ readonly raw: number; readonly ours: number }> {
  const taken: { raw: number[]; ours: number[] } = { raw: [], ours: [] };
  for (let round = 0; round < WARM_UPS + times; round += 1) {
    const [rawMs, oursMs] = [await raw(), await ours()];
    if (round < WARM_UPS) continue;
    taken.raw.push(rawMs);
    taken.ours.push(oursMs);
  }
  const median = (values: readonly number[]): number =>
    percentile(
      values.toSorted((one, other) => one - other),
      0.5,
    );
  return { raw: median(taken.raw), ours: median(taken.ours) };
}

let opened = 0;

function open(sandboxes: Sandboxes, root: string): Sandbox {
  opened += 1;
  const names = { tenantId: 'bench', turnId: `t_${String(opened)}`, ownerId: `bench.${String(process.pid)}` };
  return sandboxes.open({ ...names, root, masked, readOnly: [], dispatcherFolder: undefined });
}

async function timeCommand(sandbox: Sandbox): Promise<number> {
  const startedMs = performance.now();
  const { end, output } = await sandbox.run({ argv, timeoutMs: COMMAND_TIMEOUT_MS }, { signal: AbortSignal.timeout(COMMAND_TIMEOUT_MS) });
  const ms = performance.now() - startedMs;
  if (end.kind !== 'exited' || end.exitCode !== 0) throw new Error(`the command ended with ${JSON.stringify(end)}: ${output}`);
  return ms;
}
