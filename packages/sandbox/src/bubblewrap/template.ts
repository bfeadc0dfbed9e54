import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import type { SandboxLimits } from '../sandbox.ts';
import { dispatcherPath, workspacePath, type Workspace } from '../workspace.ts';
import { seccompProgram } from './seccomp.ts';

/** The descriptors of the bubblewrap process, by purpose. */
export const descriptors = { status: 3, gate: 4, seccomp: 5, passwd: 6, group: 7 } as const;

/**
 * Where the turn's /tmp is mounted in the namespace that its commands share: a path that no workspace is ever below.
 */
export const sharedTmp = '/sys';

/** The parts of a sandbox, independent of the command in it. */
export interface SandboxPlan {
  readonly workspace: Workspace;
  readonly dispatcherFolder: string | undefined;
  /** The path inside. */
  readonly cwd: string;
  /** Whether bubblewrap runs as root: it then makes no user namespace, and the command becomes the owner at the end. */
  readonly asRoot: boolean;
  readonly filtersCalls: boolean;
}

export interface CommandPlan extends SandboxPlan {
  readonly limits: SandboxLimits;
  readonly argv: readonly string[];
  /** Whether processes and memory are limited from outside, for all together. */
  readonly inCgroup: boolean;
}

/** Programs and libraries; a link on this machine is a link inside. */
const systemFolders = ['/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'] as const;

/** Files in /etc that programs need, and none that reveals this machine's users or services. */
const systemSettings = [
  '/etc/ld.so.cache',
  '/etc/alternatives',
  '/etc/localtime',
  '/etc/ssl/certs',
  '/etc/ca-certificates',
  '/etc/mime.types',
  '/etc/magic',
  '/etc/fonts',
  '/etc/python3',
  '/etc/ImageMagick-6',
  '/etc/ImageMagick-7',
] as const;

const smallTmpBytes = 64 * 1024 * 1024;
const maskBytes = 4096;
const blockBytes = 512;
const kilobyte = 1024;

/** The one template of a sandbox. Nothing in it comes from configuration that a tenant can reach. */
export function bubblewrapArguments(plan: CommandPlan): string[] {
  return ['bwrap', ...bubblewrapFlags(plan, ['--bind', sharedTmp, '/tmp']), '--', ...becomeOwner(plan), ...program(plan)];
}

/** All of bubblewrap's arguments for a sandbox; `tmp` are the arguments that make /tmp. */
export function bubblewrapFlags(plan: SandboxPlan, tmp: readonly string[]): string[] {
  return [...isolation(plan), ...environment(), ...system(), ...tmp, ...bindFolders(plan), ...covers(plan.workspace), '--chdir', plan.cwd];
}

/** What bubblewrap reads, by descriptor. */
export function descriptorContents({ workspace, filtersCalls }: SandboxPlan): ReadonlyMap<number, string | Buffer> {
  return new Map<number, string | Buffer>([
    [descriptors.passwd, passwdFile(workspace)],
    [descriptors.group, groupFile(workspace)],
    [descriptors.seccomp, (filtersCalls ? seccompProgram() : undefined) ?? ''],
  ]);
}

function isolation({ asRoot, filtersCalls, workspace }: SandboxPlan): string[] {
  const { status, seccomp } = descriptors;
  const { uid, gid } = workspace.owner;
  return [
    ['--unshare-ipc', '--unshare-pid', '--unshare-net', '--unshare-uts', '--unshare-cgroup-try'],
    ['--die-with-parent', '--new-session', '--hostname', 'sandbox', '--cap-drop', 'ALL'],
    // The capabilities to change the user; dropped as soon as it has changed.
    asRoot
      ? ['CAP_SETUID', 'CAP_SETGID', 'CAP_SETPCAP'].flatMap((capability) => ['--cap-add', capability])
      : ['--unshare-user', '--disable-userns', '--uid', String(uid), '--gid', String(gid)],
    ['--json-status-fd', String(status)],
    filtersCalls ? ['--seccomp', String(seccomp)] : [],
  ].flat();
}

function environment(): string[] {
  const path = [dispatcherPath, '/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'].join(':');
  return ['--clearenv', '--setenv', 'PATH', path, '--setenv', 'HOME', '/tmp', '--setenv', 'LANG', 'C.UTF-8'];
}

function system(): string[] {
  const { passwd, group } = descriptors;
  return [
    ['--ro-bind', '/usr', '/usr'],
    // Parent folders that bubblewrap creates by itself are accessible to root only, so these are created explicitly.
    ['/etc', '/etc/ssl', '/run'].flatMap((path) => ['--perms', '0755', '--dir', path]),
    systemFolders.flatMap(systemFolder),
    systemSettings.flatMap((path) => ['--ro-bind-try', path, path]),
    ['--ro-bind-data', String(passwd), '/etc/passwd', '--ro-bind-data', String(group), '/etc/group'],
    ['--proc', '/proc', '--dev', '/dev'],
    ['--perms', '1777', '--size', String(smallTmpBytes), '--tmpfs', '/dev/shm'],
    ['--remount-ro', '/dev'],
  ].flat();
}

function systemFolder(path: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return stats.isSymbolicLink() ? ['--symlink', join('usr', path), path] : ['--ro-bind', path, path];
}

function bindFolders({ workspace, dispatcherFolder }: SandboxPlan): string[] {
  return [
    ['--bind', workspace.root, workspacePath],
    dispatcherFolder === undefined ? [] : ['--ro-bind', dispatcherFolder, dispatcherPath],
    ['--remount-ro', '/'],
  ].flat();
}

function covers({ root, maskedFolders, maskedFiles, readOnly }: Workspace): string[] {
  return [
    ...readOnly.flatMap((name) => ['--ro-bind', join(root, name), join(workspacePath, name)]),
    ...maskedFolders.flatMap((name) => {
      const path = join(workspacePath, name);
      return ['--perms', '0555', '--size', String(maskBytes), '--tmpfs', path, '--remount-ro', path];
    }),
    // Opening a device is refused on what bubblewrap binds: it can be neither read nor written.
    ...maskedFiles.flatMap(({ name }) => ['--ro-bind', '/dev/null', join(workspacePath, name)]),
  ];
}

/**
 * Waits at the gate, sets what is counted for each process, makes one stream of the two outputs, and becomes the
 * command.
 */
function program({ inCgroup, limits, argv }: CommandPlan): string[] {
  const gate = String(descriptors.gate);
  const start = [
    `echo >&${gate}; read -r go <&${gate} || exit 1; exec ${gate}>&-`,
    'ulimit -c 0',
    `ulimit -f ${String(Math.floor(limits.fileBytes / blockBytes))}`,
    `ulimit -n ${String(limits.openFiles)}`,
    ...(inCgroup
      ? []
      : [
          `ulimit -v ${String(Math.floor(limits.memoryBytes / kilobyte))}`,
          `ulimit -u ${String(limits.pids)} 2>/dev/null || ulimit -p ${String(limits.pids)}`,
        ]),
    'exec "$@" 2>&1',
  ].join('; ');
  return ['/bin/sh', '-c', start, 'sh', ...argv];
}

/** The arguments before a program: as root, bubblewrap makes no user namespace that could name another user. */
export function becomeOwner({ asRoot, workspace }: SandboxPlan): string[] {
  const { uid, gid } = workspace.owner;
  if (!asRoot) return [];
  return [
    '/usr/bin/setpriv',
    `--reuid=${String(uid)}`,
    `--regid=${String(gid)}`,
    '--clear-groups',
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--',
  ];
}

function passwdFile({ owner: { uid, gid } }: Workspace): string {
  return `agent:x:${String(uid)}:${String(gid)}:agent:/tmp:/bin/bash\n`;
}

function groupFile({ owner: { gid } }: Workspace): string {
  return `agent:x:${String(gid)}:\n`;
}
