import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that is removed with everything in it at the end of its scope. */
export async function temporaryDirectory(): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'concierge-'));
  return { path, [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}
