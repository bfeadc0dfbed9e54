export type { CommandEnd, CommandResult, RunOptions, Sandbox, SandboxCommand, Sandboxes, SandboxRequest } from './sandbox.ts';
export { SandboxUnavailable } from './sandbox.ts';
export type { SandboxLimits } from './limits.ts';
