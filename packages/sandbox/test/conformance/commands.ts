import { writeFile, chmod, mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { SandboxUnavailable } from '../../src/index.ts';
import type { Side } from './side.ts';
import { bash, defaultTimeoutMs as timeoutMs, newMarker, Workspaces } from '../workspaces.ts';

export function commandCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('reports that it is usable', async () => {
    expect(sandboxes.kind).toBe(side.kind);
    await sandboxes.check();
  });

  it('runs in the workspace, and reports how the program ended', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect(await bash(sandbox, 'pwd; cat notes/today.md')).toMatchObject({
      end: { kind: 'exited', exitCode: 0 },
      output: '/workspace\na note\n',
    });
    expect((await bash(sandbox, 'exit 3')).end).toEqual({ kind: 'exited', exitCode: 3 });
    expect((await bash(sandbox, 'exit 129')).end).toEqual({ kind: 'exited', exitCode: 129 });
    expect((await bash(sandbox, 'kill -KILL $$')).end).toEqual({ kind: 'signalled', signal: 'SIGKILL' });
    expect((await bash(sandbox, 'kill -SEGV $$')).end).toEqual({ kind: 'signalled', signal: 'SIGSEGV' });
  });

  it('passes arguments as they are, without a shell', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { signal } = new AbortController();
    const argv = ['printf', '%s|', 'a b', '$HOME', '*', '"', "'", '\\', 'é'] as const;
    expect((await sandbox.run({ argv, timeoutMs }, { signal })).output).toBe(`a b|$HOME|*|"|'|\\|é|`);
    const missing = await sandbox.run({ argv: ['no-such-program'], timeoutMs }, { signal });
    expect(missing.end).toEqual({ kind: 'exited', exitCode: 127 });
    expect(missing.output).toContain('not found');
  });

  it('gives a program its input, its folder and a small environment', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    expect((await bash(sandbox, 'cat', { stdin: 'a line\nand é' })).output).toBe('a line\nand é');
    expect((await bash(sandbox, 'cat; echo end')).output).toBe('end\n');
    expect((await bash(sandbox, 'true', { stdin: 'x'.repeat(1_000_000) })).end).toEqual({ kind: 'exited', exitCode: 0 });
    expect((await bash(sandbox, 'cat today.md', { cwd: 'notes' })).output).toBe('a note\n');
    const names = (await bash(sandbox, 'env')).output.split('\n').map((line) => line.split('=')[0]);
    expect(names).toEqual(expect.arrayContaining(['HOME', 'LANG', 'PATH']));
    expect(names.filter((name) => /^(?:NODE|JEST|npm|USER|SSH|DOCKER)/u.test(name ?? ''))).toEqual([]);
    expect((await bash(sandbox, 'echo $PATH $LANG; touch ~/x && echo home')).output).toMatch(/^\/run\/concierge:\S+ C\.UTF-8\nhome\n$/u);
  });

  it('runs several at once, over one /tmp, also when they come first', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const line = (own: number): string =>
      `touch /tmp/${String(own)}; until [ -e /tmp/1 ] && [ -e /tmp/2 ] && [ -e /tmp/3 ]; do sleep 0.05; done; echo met`;
    const results = await Promise.all([1, 2, 3].map(async (own) => bash(sandbox, line(own))));
    expect(results.map(({ output }) => output)).toEqual(['met\n', 'met\n', 'met\n']);
  });

  it('has the dispatcher first on the path, read-only, with its socket', async () => {
    await using workspaces = await Workspaces.make();
    const folder = join(workspaces.path, 'dispatcher');
    await mkdir(folder);
    await writeFile(join(folder, 'ls'), '#!/bin/sh\necho dispatched "$@"\n', { mode: 0o755 });
    await using server = createServer((socket) => socket.end('answered'));
    server.listen(join(folder, 'socket'));
    await once(server, 'listening');
    await chmod(join(folder, 'socket'), 0o666);
    await using sandbox = sandboxes.open(workspaces.request({ dispatcherFolder: folder }));
    expect(
      (await bash(sandbox, 'ls -l; touch /run/concierge/x && echo written; rm -f /run/concierge/socket && echo removed')).output,
    ).toMatch(/^dispatched -l\n/u);
    const connect = `perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new("/run/concierge/socket")->getline'`;
    expect((await bash(sandbox, connect)).output).toBe('answered');
    expect((await bash(sandbox, 'touch /run/concierge/x 2>/dev/null && echo written')).output).toBe('');
  });

  it('reports an error when the workspace is not there', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request({ root: join(workspaces.path, 'none') }));
    await expect(bash(sandbox, 'true')).rejects.toThrow(SandboxUnavailable);
  });
}
