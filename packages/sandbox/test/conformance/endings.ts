import { expect, it } from '@jest/globals';
import { eventually } from '@concierge/testing';
import type { Side } from './side.ts';
import { bash, newMarker, processesNamed, sleeper, Workspaces } from '../workspaces.ts';

/**
 * Ways to escape from the process that is waited for: a session of one's own, no environment, a parent that has gone.
 */
function escapees(marker: string): string {
  return [
    `${sleeper(marker)} &`,
    `nohup ${sleeper(marker)} >/dev/null 2>&1 &`,
    `setsid ${sleeper(marker)} &`,
    `(setsid env -i /usr/bin/setsid ${sleeper(marker)} >/dev/null 2>&1 </dev/null &);`,
    `setsid bash -c "(setsid ${sleeper(marker).replaceAll('"', '\\"')} &) & exit" &`,
  ].join(' ');
}
const escapeeCount = 5;
const quietCount = 12;
const rounds = 15;

/** Waits, inside, until so many processes go by the name. */
function untilThere(marker: string, count: number): string {
  return `until [ "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c '^${marker}')" = ${String(count)} ]; do sleep 0.05; done`;
}

export function endingCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('ends a command over its time with all it started, and leaves the others alone', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const [marker, othersMarker] = [newMarker(), newMarker()];
    await bash(sandbox, 'touch /tmp/kept');
    const other = bash(sandbox, `${sleeper(othersMarker)} & until [ -e go ]; do sleep 0.05; done; jobs -r | wc -l`);
    await eventually(() => processesNamed(othersMarker).length === 1);
    const line = `${escapees(marker)} ${untilThere(marker, escapeeCount)}; echo all there; sleep 600`;
    // A busy machine takes its time until all are there.
    for (let timeoutMs = 4000, output = ''; !output.includes('all there'); timeoutMs *= 2) {
      const result = await bash(sandbox, line, { timeoutMs });
      expect(result.end).toEqual({ kind: 'timed_out' });
      expect(processesNamed(marker)).toEqual([]);
      ({ output } = result);
    }
    expect(processesNamed(othersMarker)).toHaveLength(1);
    await workspaces.write('go', '');
    expect(await other).toMatchObject({ end: { kind: 'exited', exitCode: 0 }, output: '1\n' });
    expect((await bash(sandbox, 'ls /tmp/kept')).output).toBe('/tmp/kept\n');
  });

  it('ends a command that its caller gives up with all it started', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const marker = newMarker();
    const stop = new AbortController();
    const run = bash(sandbox, `${escapees(marker)} sleep 600`, { signal: stop.signal });
    await eventually(() => processesNamed(marker).length === escapeeCount);
    stop.abort();
    expect((await run).end).toEqual({ kind: 'stopped' });
    expect(processesNamed(marker)).toEqual([]);
  });

  it('does not run what was given up before', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'touch ran', { signal: AbortSignal.abort() })).end).toEqual({ kind: 'stopped' });
    expect((await bash(sandbox, 'ls ran')).end).not.toEqual({ kind: 'exited', exitCode: 0 });
  });

  it('ends with a command what it left in the background', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const marker = newMarker();
    expect(await bash(sandbox, `${escapees(marker)} ${untilThere(marker, escapeeCount)}; echo all`)).toMatchObject({
      end: { kind: 'exited', exitCode: 0 },
      output: 'all\n',
    });
    expect(processesNamed(marker)).toEqual([]);
  });

  it('reports the end of a command when what it left has ended, not before', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    for (let round = 0; round < rounds; round += 1) {
      const marker = newMarker();
      // They hold none of its streams: the run does not wait for them by accident.
      const leave = `for i in $(seq ${String(quietCount)}); do setsid ${sleeper(marker)} </dev/null >/dev/null 2>&1 & done`;
      await bash(sandbox, `${leave}; ${untilThere(marker, quietCount)}`);
      expect(processesNamed(marker)).toEqual([]);
    }
  });

  it('goes on after a command has killed everything it could', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'kill -KILL -1; kill -KILL $$')).end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect((await bash(sandbox, 'echo on')).output).toBe('on\n');
  });
}
