export { BubblewrapSandboxes, type BubblewrapSandboxesOptions } from './bubblewrap-sandboxes.ts';
