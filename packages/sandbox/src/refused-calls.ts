/**
 * System calls that are refused inside (EPERM), on top of what the missing capabilities refuse, by name: their numbers
 * on the processors that have them (Linux, `arch/x86/entry/syscalls/syscall_64.tbl` and
 * `include/uapi/asm-generic/unistd.h`). One list for every engine.
 */
export const refusedCalls: Readonly<Record<string, CallNumbers>> = {
  // Not namespaced, or a way to see another process's memory.
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  kcmp: { x64: 312, arm64: 272 },
  // Where kernels had their holes.
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  // Lead to other namespaces or file systems.
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  open_tree: { x64: 428, arm64: 428 },
  move_mount: { x64: 429, arm64: 429 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  mount_setattr: { x64: 442, arm64: 442 },
  setns: { x64: 308, arm64: 268 },
  unshare: { x64: 272, arm64: 97 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  name_to_handle_at: { x64: 303, arm64: 264 },
  // Belong to the machine: its modules, clock, disks, log, memory placement, ports.
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  create_module: { x64: 174 },
  query_module: { x64: 178 },
  get_kernel_syms: { x64: 177 },
  swapon: { x64: 167, arm64: 224 },
  swapoff: { x64: 168, arm64: 225 },
  reboot: { x64: 169, arm64: 142 },
  acct: { x64: 163, arm64: 89 },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: { x64: 443, arm64: 443 },
  syslog: { x64: 103, arm64: 116 },
  vhangup: { x64: 153, arm64: 58 },
  settimeofday: { x64: 164, arm64: 170 },
  clock_settime: { x64: 227, arm64: 112 },
  fanotify_init: { x64: 300, arm64: 262 },
  mbind: { x64: 237, arm64: 235 },
  set_mempolicy: { x64: 238, arm64: 237 },
  move_pages: { x64: 279, arm64: 239 },
  migrate_pages: { x64: 256, arm64: 238 },
  iopl: { x64: 172 },
  ioperm: { x64: 173 },
  // Obsolete.
  lookup_dcookie: { x64: 212, arm64: 18 },
  nfsservctl: { x64: 180, arm64: 42 },
  uselib: { x64: 134 },
  ustat: { x64: 136 },
  sysfs: { x64: 139 },
  _sysctl: { x64: 156 },
};

export interface CallNumbers {
  readonly x64: number;
  readonly arm64?: number;
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET: a new process may have no namespace of its own. */
export const namespaceFlags = [0x2_00_00, 0x2_00_00_00, 0x4_00_00_00, 0x8_00_00_00, 0x10_00_00_00, 0x20_00_00_00, 0x40_00_00_00] as const;

/**
 * The kernel's crypto sockets (AF_ALG), and the socket to the hypervisor of a virtual machine (AF_VSOCK): neither knows
 * namespaces.
 */
export const refusedSocketFamilies = [38, 40] as const;

export const EPERM = 1;
/** For clone3, whose flags are behind a pointer: the C library takes clone(2) when this one is not there. */
export const ENOSYS = 38;
