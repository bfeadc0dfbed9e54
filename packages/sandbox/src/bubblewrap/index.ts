export { BubblewrapSandboxes, type BubblewrapSandboxesOptions } from './bubblewrap-sandbox.ts';
export { becomeOwner, bubblewrapFlags, descriptorContents, type SandboxPlan } from './template.ts';
