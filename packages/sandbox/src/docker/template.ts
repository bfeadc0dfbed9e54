import { isAbsolute, join, posix, relative } from 'node:path';
import type { ContainerCreateOptions } from 'dockerode';
import { SandboxUnavailable, type SandboxRequest, type SandboxLimits } from '../sandbox.ts';
import { dispatcherPath, workspacePath, type Workspace } from '../workspace.ts';
import { ENOSYS, EPERM, namespaceFlags, refusedCalls, refusedSocketFamilies } from '../refused-calls.ts';

export const labels = {
  deployment: 'concierge.deployment',
  instance: 'concierge.instance',
  owner: 'concierge.owner',
  tenant: 'concierge.tenant',
  turn: 'concierge.turn',
} as const;

/** The settings of the engine for every container. */
export interface EngineSettings {
  readonly image: string;
  /** Such as `runsc`; undefined: the engine's default. */
  readonly runtime: string | undefined;
  /** Where the data directory is for the engine, when this process is in a container itself. */
  readonly dataFolder: { readonly here: string; readonly onHost: string } | undefined;
  readonly limits: SandboxLimits;
  readonly deployment: string;
  /** This process's adapter: a container with its owner but another instance is left from an earlier run. */
  readonly instance: string;
}

export interface ContainerPlan {
  readonly engine: EngineSettings;
  readonly request: SandboxRequest;
  readonly workspace: Workspace;
}

/** The paths that the engine covers by default; naming more replaces its list. */
const maskedByEngine = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
] as const;
const readOnlyByEngine = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'] as const;

/** `nobody`: owns nothing in the workspace. */
const keeperUser = '65534:65534';

const sharedMemoryBytes = 64 * 1024 * 1024;
const path = [dispatcherPath, '/usr/local/bin', '/usr/bin', '/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'].join(':');

/**
 * The one template of a container. Nothing in it comes from configuration that a tenant can reach. Its first process is
 * `cat` over a stream that this process holds open: with this process the stream ends, and with it the container, which
 * the engine then removes. It belongs to another user than the commands, which could otherwise hide in it (ptrace) from
 * one to the next.
 */
export function containerOptions({ engine, request, workspace }: ContainerPlan): ContainerCreateOptions {
  return {
    Image: engine.image,
    Cmd: ['cat'],
    Entrypoint: [],
    OpenStdin: true,
    StdinOnce: true,
    AttachStdout: false,
    AttachStderr: false,
    User: keeperUser,
    WorkingDir: '/',
    Hostname: 'sandbox',
    NetworkDisabled: true,
    Env: [`PATH=${path}`, 'HOME=/tmp', 'LANG=C.UTF-8'],
    Labels: {
      [labels.deployment]: engine.deployment,
      [labels.instance]: engine.instance,
      [labels.owner]: request.ownerId,
      [labels.tenant]: request.tenantId,
      [labels.turn]: request.turnId,
    },
    HostConfig: {
      ...isolation(engine),
      ...resources(engine.limits),
      ...bindFolders({ engine, request, workspace }),
    },
  };
}

function isolation({ runtime }: EngineSettings): ContainerCreateOptions['HostConfig'] {
  return {
    ...(runtime === undefined ? {} : { Runtime: runtime }),
    Init: true,
    AutoRemove: true,
    NetworkMode: 'none',
    IpcMode: 'private',
    ReadonlyRootfs: true,
    Privileged: false,
    CapDrop: ['ALL'],
    SecurityOpt: ['no-new-privileges:true', `seccomp=${seccompProfile()}`],
    LogConfig: { Type: 'none', Config: {} },
  };
}

function resources(limits: SandboxLimits): ContainerCreateOptions['HostConfig'] {
  return {
    PidsLimit: limits.pids,
    Memory: limits.memoryBytes,
    // Memory and swap together: no swap.
    MemorySwap: limits.memoryBytes,
    NanoCpus: Math.round(limits.cpus * 1e9),
    ShmSize: sharedMemoryBytes,
    Ulimits: [
      { Name: 'fsize', Soft: limits.fileBytes, Hard: limits.fileBytes },
      { Name: 'nofile', Soft: limits.openFiles, Hard: limits.openFiles },
      { Name: 'core', Soft: 0, Hard: 0 },
    ],
  };
}

/**
 * The only paths of the host are folders that no tenant can swap for something else. What is at the top of the
 * workspace is covered by its path inside: the runtime resolves that within the container's own root, whatever it may
 * be a link to by then.
 */
function bindFolders({ engine, request, workspace }: ContainerPlan): ContainerCreateOptions['HostConfig'] {
  const inside = (name: string): string => posix.join(workspacePath, name);
  const { dispatcherFolder } = request;
  return {
    Mounts: [
      { Type: 'bind', Source: onHost(engine, workspace.root), Target: workspacePath, ReadOnly: false },
      ...(dispatcherFolder === undefined
        ? []
        : [{ Type: 'bind' as const, Source: onHost(engine, dispatcherFolder), Target: dispatcherPath, ReadOnly: true }]),
    ],
    Tmpfs: {
      '/tmp': `rw,nosuid,nodev,exec,size=${String(engine.limits.tmpBytes)},mode=1777`,
      ...Object.fromEntries(workspace.maskedFolders.map((name) => [inside(name), 'ro,nosuid,nodev,noexec,size=4k,mode=0555'])),
    },
    MaskedPaths: [...maskedByEngine, ...workspace.maskedFiles.map(({ name }) => inside(name))],
    ReadonlyPaths: [...readOnlyByEngine, ...workspace.readOnly.map(inside)],
  };
}

/**
 * @throws SandboxUnavailable for a folder that the engine cannot have: the operator put it outside the data directory
 */
function onHost({ dataFolder }: EngineSettings, folder: string): string {
  if (dataFolder === undefined) return folder;
  const below = relative(dataFolder.here, folder);
  if (below.startsWith('..') || isAbsolute(below))
    throw new SandboxUnavailable('A folder of the sandbox is outside the data directory, where the engine cannot reach it.');
  return join(dataFolder.onHost, below);
}

/**
 * The refused calls as a profile for the engine (docs.docker.com/engine/security/seccomp). It takes the place of the
 * engine's own list, which differs between versions: that of 20.10 allows io_uring and AF_VSOCK.
 */
function seccompProfile(): string {
  const names = Object.keys(refusedCalls);
  const refuse = { action: 'SCMP_ACT_ERRNO', errnoRet: EPERM };
  return JSON.stringify({
    defaultAction: 'SCMP_ACT_ALLOW',
    syscalls: [
      { names, ...refuse },
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
      ...namespaceFlags.map((flag) => ({
        names: ['clone'],
        ...refuse,
        args: [{ index: 0, value: flag, valueTwo: flag, op: 'SCMP_CMP_MASKED_EQ' }],
      })),
      ...refusedSocketFamilies.map((family) => ({ names: ['socket'], ...refuse, args: [{ index: 0, value: family, op: 'SCMP_CMP_EQ' }] })),
    ],
  });
}
