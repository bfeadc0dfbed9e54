export { BudgetedSandbox, type WorkspaceBudget } from './budgeted-sandbox.ts';
export type {
  CommandEnd,
  CommandResult,
  RunOptions,
  Sandbox,
  SandboxCommand,
  Sandboxes,
  SandboxRequest,
  WorkspaceUse,
  SandboxLimits,
} from './sandbox.ts';
export { SandboxUnavailable } from './sandbox.ts';
