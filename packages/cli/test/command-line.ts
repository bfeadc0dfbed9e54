import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { Tenants, type TenantScope } from '@concierge/tenant';
import { temporaryDirectory } from '@concierge/testing';
import { readConfig } from '../src/config.ts';
import { run } from '../src/run.ts';

const keySecret = 'a secret that is long enough for keys';
const secretsKey = 'a secret that is long enough for credentials';

interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** As a pipe brings it. */
function toParts(bytes: Buffer): Buffer[] {
  const size = 65_536;
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** The command line over a separate data folder. */
export class CommandLine implements AsyncDisposable {
  readonly dataDir: string;
  readonly #remove: () => Promise<void>;
  readonly #env: NodeJS.ProcessEnv;

  private constructor(dataDir: string, env: NodeJS.ProcessEnv, remove: () => Promise<void>) {
    this.dataDir = dataDir;
    this.#env = { DATA_DIR: dataDir, KEY_SECRET: keySecret, SECRETS_KEY: secretsKey, LOG_LEVEL: 'silent', ...env };
    this.#remove = remove;
  }

  static async over(env: NodeJS.ProcessEnv = {}): Promise<CommandLine> {
    const folder = await temporaryDirectory();
    await mkdir(join(folder.path, 'tenants'));
    return new CommandLine(folder.path, env, async () => await folder[Symbol.asyncDispose]());
  }

  async run(...args: string[]): Promise<Outcome> {
    return this.runWith({}, ...args);
  }

  /** With other variables than the rest. */
  async runWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Outcome> {
    const { code, out, err } = await this.runPiped({ env }, ...args);
    return { code, out: out.toString(), err };
  }

  /** With bytes for its input, and the bytes of its output. */
  async runPiped(
    { env = {}, input = Buffer.alloc(0) }: { readonly env?: NodeJS.ProcessEnv; readonly input?: Buffer },
    ...args: string[]
  ): Promise<Omit<Outcome, 'out'> & { readonly out: Buffer }> {
    const [out, err] = [new PassThrough({ highWaterMark: 64 * 1024 * 1024 }), new PassThrough()];
    const code = await run(args, {
      readConfig: () => readConfig({ ...this.#env, ...env }),
      input: Readable.from(toParts(input)),
      out,
      err,
    });
    return { code, out: Buffer.from(out.read() ?? ''), err: String(err.read() ?? '') };
  }

  /** What the command answers with `--json`; throws when it fails. */
  async json(...args: string[]): Promise<unknown> {
    const { code, out, err } = await this.run(...args, '--json');
    if (code !== 0) throw new Error(err);
    return JSON.parse(out);
  }

  /** The same tenant as a service sees it. */
  async withScope<Result>(tenantId: string, use: (scope: TenantScope, tenants: Tenants) => Promise<Result>): Promise<Result> {
    const log = createLog({ service: 'test', level: 'silent' });
    const index = await openIndex({ databaseUrl: undefined, dataDir: this.dataDir, log });
    const tenants = new Tenants({ dataDir: this.dataDir, index, keySecret, secretsKey, log });
    try {
      return await use(await tenants.open(tenantId), tenants);
    } finally {
      await index.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#remove();
  }
}
