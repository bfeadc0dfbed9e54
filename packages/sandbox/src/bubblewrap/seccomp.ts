/**
 * System calls that are refused inside (EPERM), on top of what the missing capabilities refuse: they are not namespaced (keyrings, bpf,
 * performance counters), lead to other namespaces, or are where kernels had their holes. A classic BPF program, made here because
 * bubblewrap takes it ready-made; Docker brings a list of its own.
 */
const refused = {
  x64: {
    architecture: 0xc0_00_00_3e,
    // add_key request_key keyctl bpf perf_event_open userfaultfd io_uring_setup/enter/register
    calls: [
      248, 249, 250, 321, 298, 323, 425, 426, 427,
      // mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr setns unshare
      165, 166, 155, 428, 429, 430, 431, 432, 433, 442, 308, 272,
      // kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff reboot acct quotactl quotactl_fd
      246, 320, 175, 313, 176, 167, 168, 169, 163, 179, 443,
      // open_by_handle_at syslog
      304, 103,
    ],
    clone: 56,
    clone3: 435,
    socket: 41,
  },
  arm64: {
    architecture: 0xc0_00_00_b7,
    calls: [
      217, 218, 219, 280, 241, 282, 425, 426, 427, 40, 39, 41, 428, 429, 430, 431, 432, 433, 442, 268, 97, 104, 294, 105, 273, 106, 224,
      225, 142, 89, 60, 443, 265, 116,
    ],
    clone: 220,
    clone3: 435,
    socket: 198,
  },
} as const;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET */
const newNamespaces = 0x7e_02_00_00;
/** The kernel's crypto sockets, and the door to whatever runs this machine if it is virtual: neither knows namespaces. */
const AF_ALG = 38;
const AF_VSOCK = 40;
/** Numbers from here on are calls of the x32 interface. */
const x32Base = 0x40_00_00_00;

const EPERM = 1;
const ENOSYS = 38;
const ALLOW = 0x7f_ff_00_00;
const errno = (code: number): number => 0x00_05_00_00 | code;

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Where in `struct seccomp_data`. */
const callOffset = 0;
const architectureOffset = 4;
const firstArgumentOffset = 16;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** undefined on a kind of processor whose numbers are not listed here. */
export function seccompProgram(processor: string = process.arch): Buffer | undefined {
  if (processor !== 'x64' && processor !== 'arm64') return undefined;
  const { architecture, calls, clone, clone3, socket } = refused[processor];
  const refuse: Instruction = [RETURN, 0, 0, errno(EPERM)];
  const allow: Instruction = [RETURN, 0, 0, ALLOW];
  const program: Instruction[] = [
    [LOAD, 0, 0, architectureOffset],
    [JUMP_EQUAL, 1, 0, architecture],
    refuse,
    [LOAD, 0, 0, callOffset],
    [JUMP_AT_LEAST, 0, 1, x32Base],
    refuse,
    ...calls.flatMap((call): Instruction[] => [[JUMP_EQUAL, 0, 1, call], refuse]),
    // Its flags are behind a pointer: the C library takes clone(2) when this one is not there.
    [JUMP_EQUAL, 0, 1, clone3],
    [RETURN, 0, 0, errno(ENOSYS)],
    [JUMP_EQUAL, 0, 4, clone],
    [LOAD, 0, 0, firstArgumentOffset],
    [JUMP_ANY_BIT, 0, 1, newNamespaces],
    refuse,
    allow,
    [JUMP_EQUAL, 0, 4, socket],
    [LOAD, 0, 0, firstArgumentOffset],
    [JUMP_EQUAL, 1, 0, AF_ALG],
    [JUMP_EQUAL, 0, 1, AF_VSOCK],
    refuse,
    allow,
  ];
  return Buffer.concat(program.map(encode));
}

function encode([code, ifTrue, ifFalse, value]: Instruction): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt16LE(code, 0);
  bytes.writeUInt8(ifTrue, 2);
  bytes.writeUInt8(ifFalse, 3);
  bytes.writeUInt32LE(value, 4);
  return bytes;
}
