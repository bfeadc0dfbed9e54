import { ENOSYS, EPERM, namespaceFlags, refusedCalls, refusedSocketFamilies } from '../refused-calls.ts';

/** The numbers of the calls whose arguments are checked, and the kernel's name of the processor. */
const processors = {
  x64: { architecture: 0xc0_00_00_3e, clone: 56, clone3: 435, socket: 41 },
  arm64: { architecture: 0xc0_00_00_b7, clone: 220, clone3: 435, socket: 198 },
} as const;

const newNamespaces = namespaceFlags.reduce((all, flag) => all | flag, 0);
/** Numbers from here on are calls of the x32 interface. */
const x32Base = 0x40_00_00_00;

const ALLOW = 0x7f_ff_00_00;
const errno = (code: number): number => 0x00_05_00_00 | code;

const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Offsets in `struct seccomp_data`. */
const callOffset = 0;
const architectureOffset = 4;
const firstArgumentOffset = 16;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/**
 * The refused calls as a classic BPF program, which bubblewrap takes ready-made. undefined on a processor whose numbers
 * are not listed.
 */
export function seccompProgram(processor: string = process.arch): Buffer | undefined {
  if (processor !== 'x64' && processor !== 'arm64') return undefined;
  const { architecture, clone, clone3, socket } = processors[processor];
  const calls = Object.values(refusedCalls).flatMap(({ [processor]: call }) => call ?? []);
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
    [JUMP_EQUAL, 0, 1, clone3],
    [RETURN, 0, 0, errno(ENOSYS)],
    [JUMP_EQUAL, 0, 4, clone],
    [LOAD, 0, 0, firstArgumentOffset],
    [JUMP_ANY_BIT, 0, 1, newNamespaces],
    refuse,
    allow,
    [JUMP_EQUAL, 0, 1 + refusedSocketFamilies.length * 2, socket],
    [LOAD, 0, 0, firstArgumentOffset],
    ...refusedSocketFamilies.flatMap((family): Instruction[] => [[JUMP_EQUAL, 0, 1, family], refuse]),
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
