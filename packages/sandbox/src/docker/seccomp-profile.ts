import { ENOSYS, EPERM, namespaceFlags, refusedCalls, refusedSocketFamilies } from '../refused-calls.ts';

/**
 * The refused calls as a profile for the engine (docs.docker.com/engine/security/seccomp). It takes the place of the
 * engine's own list, which differs between versions: that of 20.10 allows io_uring and AF_VSOCK.
 */
export function seccompProfile(): string {
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
