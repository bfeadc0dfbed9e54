import { isAbsolute } from 'node:path';
import { z } from 'zod';

/** Spread into the worker's schema. */
export const sandboxEnvironment = {
  SANDBOX: z.enum(['auto', 'docker', 'bubblewrap', 'off']).default('auto'),
  SANDBOX_RUNTIME: z
    .string()
    .regex(/^[\w.-]+$/u, 'must be the name of a runtime of the Docker engine, such as runsc')
    .optional(),
  SANDBOX_IMAGE: z.string().regex(/^\S+$/u, 'must be the name of an image').default('concierge-sandbox'),
  HOST_DATA_DIR: z.string().refine(isAbsolute, 'must be an absolute path').optional(),
};

const SandboxEnvironment = z.object(sandboxEnvironment);

export interface SandboxSettings {
  readonly kind: 'auto' | 'docker' | 'bubblewrap' | 'off';
  readonly image: string;
  /** Of the Docker engine; undefined: the engine's own. */
  readonly runtime: string | undefined;
  /** Where the machine of the engine has what this process sees as its data directory; undefined: at the same place. */
  readonly hostDataDir: string | undefined;
}

export function toSandboxSettings(given: z.output<typeof SandboxEnvironment>): SandboxSettings {
  // Whoever names a runtime wants its walls: bubblewrap, which has none of them, is not put in its place.
  const kind = given.SANDBOX === 'auto' && given.SANDBOX_RUNTIME !== undefined ? 'docker' : given.SANDBOX;
  return { kind, image: given.SANDBOX_IMAGE, runtime: given.SANDBOX_RUNTIME, hostDataDir: given.HOST_DATA_DIR };
}
