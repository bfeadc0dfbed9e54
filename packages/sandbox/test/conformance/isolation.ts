import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect, it } from '@jest/globals';
import type { Side } from './side.ts';
import { bash, newMarker, secret, Workspaces } from '../workspaces.ts';

/** Each must fail: one in a line, and the line it would print. */
const forbidden = {
  'reading the passwords of the machine': 'grep -q : /etc/shadow',
  "reading root's folder": 'ls /root/*',
  'the socket of the container engine': 'test -S /var/run/docker.sock -o -S /run/docker.sock',
  'the memory of the machine': 'head -c 1 /proc/kcore | grep -q .',
  'keys of the kernel': 'cat /proc/keys | grep -q .',
  'the magic key': 'echo h > /proc/sysrq-trigger',
  'a handler for crashes': 'echo x > /proc/sys/kernel/core_pattern',
  'settings of the kernel': 'echo 1 > /proc/sys/vm/drop_caches',
  'a helper of the kernel': 'echo x > /sys/kernel/uevent_helper',
  'a release agent': 'echo x > /sys/fs/cgroup/memory/release_agent',
  'more memory': 'echo 999999999999 > /sys/fs/cgroup/memory/memory.limit_in_bytes',
  'another file system': 'mount -t tmpfs none /tmp',
  'a bind mount': 'mount --bind /workspace/notes /workspace/sessions',
  'taking a cover away': 'umount /workspace/sessions || umount -l /workspace/sessions',
  'a user namespace': 'unshare --user --map-root-user true',
  'a mount namespace': 'unshare --mount true',
  'a device': 'mknod /tmp/disk b 8 0',
  'the name of the machine': 'hostname changed',
  'the clock': 'date -s 2001-01-01',
  'another root': 'chroot / true',
  'becoming root': 'su -c true </dev/null',
  'writing to the system': 'touch /usr/x || touch /x || touch /etc/x || touch /dev/x',
  'a raw socket': `perl -MSocket -e 'exit !socket(S, AF_INET, SOCK_RAW, 1)'`,
  'a keyring': `perl -e 'use POSIX; $n = (uname)[4] eq "x86_64" ? 250 : 219; exit(syscall($n, 0, -3, 1) == -1)'`,
  io_uring: `perl -e '$b = "\\0" x 128; exit(syscall(425, 1, $b) == -1)'`,
  'a socket to the host of this machine': `perl -MSocket -e 'exit !socket(S, 40, SOCK_STREAM, 0)'`,
  'a socket of the kernel for crypto': `perl -MSocket -e 'exit !socket(S, 38, SOCK_SEQPACKET, 0)'`,
  'reading the memory of the first process': 'head -c 1 /proc/1/mem; test $? -eq 0 || dd if=/proc/1/environ of=/dev/null count=1',
  'programs for the kernel': `perl -e 'use POSIX; $n = (uname)[4] eq "x86_64" ? 321 : 280; $b = "\\0" x 128; exit(syscall($n, 0, $b, 128) == -1)'`,
} as const;

export function isolationCases(side: Side): void {
  const sandboxes = side.make({ deployment: newMarker() });

  it('refuses everything that leads out', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const lines = Object.entries(forbidden).map(
      ([what, line]) => `( ${line} ) >/dev/null 2>&1 && echo '${what.replaceAll("'", String.raw`'\''`)}'`,
    );
    expect((await bash(sandbox, `${lines.join('\n')}\necho tried`)).output).toBe('tried\n');
  });

  it('gives no rights, and lets no program give any', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { output } = await bash(sandbox, `grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status; id -u`);
    expect(output).toMatch(/^(?:Cap...:\t0{16}\n){5}NoNewPrivs:\t1\nSeccomp:\t2\n[1-9]\d*\n$/u);
  });

  it('has no network but its own loopback', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    let connections = 0;
    await using server = createServer((socket) => {
      connections += 1;
      socket.end();
    });
    server.listen(0, '0.0.0.0');
    await once(server, 'listening');
    const listening = server.address();
    const port = typeof listening === 'object' ? listening?.port : undefined;
    expect(port).toBeGreaterThan(0);
    const addresses = Object.values(networkInterfaces())
      .flatMap((list) => (list ?? []).filter(({ family }) => family === 'IPv4'))
      .map(({ address }) => address);
    expect(addresses).toContain('127.0.0.1');
    const lines = addresses.map(
      (address) => `(timeout 2 bash -c 'exec 3<>/dev/tcp/${address}/${String(port)}') 2>/dev/null && echo connected`,
    );
    expect((await bash(sandbox, `${lines.join('\n')}\ntail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '`)).output).toBe('lo\n');
    expect(connections).toBe(0);
  });

  it('shows no process of this machine or of another sandbox', async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    await using other = sandboxes.open(workspaces.request());
    const stop = new AbortController();
    const marker = newMarker();
    const heard = Promise.withResolvers<void>();
    const run = bash(other, `echo up; exec -a ${marker} sleep 600`, {
      signal: stop.signal,
      onOutput: () => {
        heard.resolve();
      },
    });
    await heard.promise;
    const look = `cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c -e '^${marker}' -e '[j]est'; test -d /proc/${String(process.pid)}/root/etc && echo there; true`;
    expect((await bash(sandbox, look)).output).toBe('0\n');
    stop.abort();
    await run;
  });

  it("finds nothing of this machine's files and of other tenants", async () => {
    await using workspaces = await Workspaces.make();
    await using sandbox = sandboxes.open(workspaces.request());
    const { output } = await bash(
      sandbox,
      `
      cat ${workspaces.outside}/secret.md ${workspaces.other}/notes/secret.md /workspace/../other/notes/secret.md /proc/1/root${workspaces.outside}/secret.md
      cat /proc/self/root${workspaces.outside}/secret.md
      ls /workspace/..
      find / -name secret.md 2>/dev/null
      for fd in /proc/[0-9]*/fd/*; do ls $fd/sessions/secret.md $fd/../other; done
      grep -r '${secret}' /workspace /tmp /run /etc /dev/shm 2>/dev/null
      true`,
    );
    expect(output).not.toContain(secret);
    expect(output).not.toMatch(/^\/.*secret\.md$/mu);
  });
}
