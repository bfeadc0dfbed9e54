import { expect, it } from '@jest/globals';
import { gate } from '@concierge/testing';
import type { Side } from './side.ts';
import { bash, newMarker, Workspaces } from '../workspaces.ts';

const outputBytes = 64 * 1024;

export function outputCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('keeps the order of what is written to either stream', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { output } = await bash(sandbox, 'for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done');
    expect(output).toBe([1, 2, 3, 4, 5].map((i) => `out ${String(i)}\nerr ${String(i)}\n`).join(''));
  });

  it('lets a program open its streams by name', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'echo one | tee /dev/stderr; cat <(echo two) >/proc/self/fd/1')).output).toBe('one\none\ntwo\n');
  });

  it('keeps the beginning and the end of a flood, and states how much it left out', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const whole = Array.from({ length: 200_000 }, (_, index) => `${String(index + 1)}\n`).join('');
    const emitted: string[] = [];
    const result = await bash(sandbox, 'seq 1 200000', { onOutput: (chunk) => emitted.push(chunk) });
    expect(result.outputBytes).toBe(whole.length);
    const [head = '', leftOut = '', tail = ''] = result.output.split(/\n\[\.\.\. (\d+) bytes of output left out here \.\.\.\]\n/u);
    expect(whole.startsWith(head)).toBe(true);
    expect(whole.endsWith(tail)).toBe(true);
    expect(head.length + Number(leftOut) + tail.length).toBe(whole.length);
    expect(head.length + tail.length).toBe(outputBytes);
    expect(emitted.join('')).toBe(whole.slice(0, outputBytes));
  });

  it('makes any bytes into text, and no character into two', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { output } = await bash(sandbox, String.raw`head -c 100000 /dev/urandom; printf '\0'`);
    expect(output.isWellFormed()).toBe(true);
    expect(output).not.toContain('\0');
    expect((await bash(sandbox, String.raw`printf '\303'; sleep 0.2; printf '\251'`)).output).toBe('é');
  });

  it('reports output while the program runs', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const heard = gate();
    const run = bash(sandbox, 'echo waiting; until [ -e go ]; do sleep 0.05; done; echo went', {
      onOutput: (chunk) => {
        if (chunk.includes('waiting')) heard.open();
      },
    });
    await heard.opened;
    await workspaces.write('go', '');
    expect((await run).output).toBe('waiting\nwent\n');
  });
}
