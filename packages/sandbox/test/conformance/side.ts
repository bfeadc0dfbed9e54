import type { SandboxLimits, Sandboxes } from '../../src/index.ts';

/** An adapter of the port, as the cases see it. */
export interface Side {
  readonly kind: 'docker' | 'bubblewrap';
  /** Opens it with a separate deployment, so that test files run in parallel. */
  make(options: { readonly deployment: string; readonly limits?: Partial<SandboxLimits> }): Sandboxes;
}
