import { expect, it } from '@jest/globals';
import type { Side } from './side.ts';
import { bash, newMarker, processesNamed, Workspaces } from '../workspaces.ts';

const MiB = 1024 * 1024;
const limits = { pids: 100, memoryBytes: 128 * MiB, tmpBytes: 8 * MiB, fileBytes: 2 * MiB, openFiles: 50 };

const forkAll = `perl -e '$n = 0; while (defined($p = fork)) { if (!$p) { sleep 600; exit } $n++ } print "$n\\n"'`;
const openAll = `perl -e '$n = 0; while (open($f[$n], "<", "/dev/null")) { $n++ } print "$n\\n"'`;

export function limitCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker(), limits });

  it('bounds processes', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const forked = Number((await bash(sandbox, forkAll)).output);
    expect(forked).toBeGreaterThan(10);
    expect(forked).toBeLessThanOrEqual(limits.pids);
    expect((await bash(sandbox, 'echo on')).output).toBe('on\n');
  });

  it('survives a fork bomb, and ends it', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const marker = newMarker();
    const bomb = `bash -c 'b() { (exec -a ${marker} sleep 600) & b | b & }; b; wait; sleep 600' 2>/dev/null; sleep 600`;
    expect((await bash(sandbox, bomb, { timeoutMs: 2000 })).end).toEqual({ kind: 'timed_out' });
    expect(processesNamed(marker)).toEqual([]);
    expect((await bash(sandbox, 'echo on')).output).toBe('on\n');
  });

  it('ends a command that takes too much memory, and reports it', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'exec tail /dev/zero')).end).toEqual({ kind: 'out_of_memory' });
    expect((await bash(sandbox, 'kill -KILL $$')).end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect((await bash(sandbox, 'exec tail /dev/zero')).end).toEqual({ kind: 'out_of_memory' });
  });

  it('counts the memory of all processes together', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    // Each holds its memory until every other one has its own or has been killed.
    const untilAll = 'select undef, undef, undef, 0.05 until 6 == (() = glob "/tmp/?")';
    const hold = `$x = "x" x ${String(40 * MiB)}; open F, ">", "/tmp/$ARGV[0]"; ${untilAll}; print "held\\n"`;
    const holders = `for i in 1 2 3 4 5 6; do { perl -e '${hold}' $i || touch /tmp/$i; } & done; wait`;
    const { output } = await bash(sandbox, holders);
    expect(output.match(/^held$/gmu)?.length ?? 0).toBeLessThan(4);
  });

  it('bounds /tmp', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const fill = 'for i in 1 2 3 4 5 6 7 8; do head -c 1900000 /dev/zero > /tmp/$i || break; done; cat /tmp/* | wc -c';
    const { output } = await bash(sandbox, fill);
    expect(output).toContain('No space left on device');
    expect(Number(output.trim().split('\n').at(-1))).toBeLessThanOrEqual(limits.tmpBytes);
  });

  it('bounds each file of the workspace', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'head -c 4000000 /dev/zero > large')).end).not.toEqual({ kind: 'exited', exitCode: 0 });
    expect((await bash(sandbox, 'wc -c < large')).output.trim()).toBe(String(limits.fileBytes));
  });

  it('bounds open files', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const opened = Number((await bash(sandbox, openAll)).output);
    expect(opened).toBeGreaterThan(10);
    expect(opened).toBeLessThanOrEqual(limits.openFiles);
  });
}
