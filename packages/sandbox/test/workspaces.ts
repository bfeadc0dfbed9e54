import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import type { CommandResult, RunOptions, Sandbox, SandboxCommand, SandboxRequest } from '../src/index.ts';

export const secret = `a secret of another tenant ${randomBytes(8).toString('hex')}`;
/** No test waits for it. */
export const defaultTimeoutMs = 180_000;

/** Two tenants' folders, and a folder of this machine that no command inside may reach. */
export class Workspaces implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(): Promise<Workspaces> {
    const path = await mkdtemp(join(tmpdir(), 'concierge-sandbox-'));
    // As data directories are: the sandbox's user may pass through it.
    await chmod(path, 0o755);
    const workspaces = new Workspaces(path);
    for (const folder of [workspaces.root, workspaces.other]) {
      for (const name of ['sessions', 'keys', 'notes', 'skills']) await mkdir(join(folder, name), { recursive: true });
      await writeFile(join(folder, 'sessions', 'secret.md'), secret);
      await writeFile(join(folder, 'tenant.json'), JSON.stringify({ secret }), { mode: 0o600 });
      await writeFile(join(folder, 'notes', 'today.md'), 'a note\n');
      await writeFile(join(folder, 'skills', 'SKILL.md'), 'a skill\n');
    }
    await writeFile(join(workspaces.other, 'notes', 'secret.md'), secret);
    await mkdir(workspaces.outside);
    await writeFile(join(workspaces.outside, 'secret.md'), secret);
    return workspaces;
  }

  get root(): string {
    return join(this.path, 'tenants', 'acme');
  }

  get other(): string {
    return join(this.path, 'tenants', 'other');
  }

  get outside(): string {
    return join(this.path, 'outside');
  }

  request(changes: Partial<SandboxRequest> = {}): SandboxRequest {
    return {
      tenantId: 'acme',
      turnId: `turn-${randomBytes(4).toString('hex')}`,
      ownerId: `owner-${randomBytes(4).toString('hex')}`,
      root: this.root,
      masked: ['sessions', 'keys', 'tenant.json'],
      readOnly: [],
      dispatcherFolder: undefined,
      ...changes,
    };
  }

  async names(): Promise<string[]> {
    return readdir(this.root);
  }

  async read(...names: readonly string[]): Promise<string> {
    return readFile(join(this.root, ...names), 'utf8');
  }

  async write(name: string, text: string): Promise<void> {
    await writeFile(join(this.root, name), text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** A line of bash in a sandbox. */
export async function bash(
  sandbox: Sandbox,
  line: string,
  { signal = new AbortController().signal, onOutput, ...command }: Partial<SandboxCommand & RunOptions> = {},
): Promise<CommandResult> {
  const options = onOutput === undefined ? { signal } : { signal, onOutput };
  return sandbox.run({ timeoutMs: defaultTimeoutMs, ...command, argv: ['bash', '-c', line] }, options);
}

/** A word for a command line that no other process on this machine has. */
export function newMarker(): string {
  return `marked-${randomBytes(8).toString('hex')}`;
}

/**
 * Processes of this machine, those in sandboxes included, that go by this name: the kernel's list, which nothing inside
 * can change.
 */
export function processesNamed(marker: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/u.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'latin1').startsWith(marker);
    } catch {
      return false;
    }
  });
}

/** A sleeping process under a name that the test can find. */
export function sleeper(marker: string): string {
  return `bash -c 'exec -a ${marker} sleep 600'`;
}
