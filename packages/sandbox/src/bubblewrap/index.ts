export { BubblewrapSandboxes, type BubblewrapSandboxesOptions } from './bubblewrap-sandboxes.ts';
export { becomeOwner, bubblewrapFlags, descriptorContents, type SandboxPlan } from './template.ts';
