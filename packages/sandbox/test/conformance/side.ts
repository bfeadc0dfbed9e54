import type { SandboxLimits, Sandboxes } from '../../src/index.ts';

/** A side of the port, as the cases see it. */
export interface Side {
  readonly kind: 'docker' | 'bubblewrap';
  /** With a deployment of its own, so that files run in parallel. */
  make(options: { readonly deployment: string; readonly limits?: Partial<SandboxLimits> }): Sandboxes;
}
