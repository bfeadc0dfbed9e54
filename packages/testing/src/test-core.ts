import { openCore, type Core, type CoreConfig } from '@concierge/core';
import type { RedisRole } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { listTurnReconcilers, TurnReconciler } from '@concierge/turn';
import { eventually } from './eventually.ts';
import { silentLog } from './index-backends.ts';
import { TestRedis } from './redis/redis-server.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { testSecrets } from './test-tenants.ts';

export type { Core } from '@concierge/core';

const LOG_WITHIN_MS = 10_000;

/** `redisUrl`: of another Redis than its own. */
export interface TestCoreOptions extends Partial<CoreConfig> {
  readonly role?: RedisRole;
}

/** What every service is built on, as `openCore` opens it, over a Redis and files of a test's own. */
export class TestCore implements AsyncDisposable {
  readonly server: TestRedis;
  readonly dataDir: string;
  /** The objects of one process. */
  readonly core: Core;
  readonly #config: CoreConfig;
  readonly #stack: AsyncDisposableStack;

  private constructor({ server, core, config, stack }: { server: TestRedis; core: Core; config: CoreConfig; stack: AsyncDisposableStack }) {
    this.server = server;
    this.dataDir = config.dataDir;
    this.core = core;
    this.#config = config;
    this.#stack = stack;
  }

  /** Redis is ready for turns, as after a reconciler's first run. */
  static async start({ role = 'worker', ...changes }: TestCoreOptions = {}): Promise<TestCore> {
    await using opened = new AsyncDisposableStack();
    const dataDir = changes.dataDir ?? opened.use(await temporaryDirectory()).path;
    const server = opened.use(await TestRedis.start());
    const config = { redisUrl: server.url, databaseUrl: undefined, failpoints: '', ...testSecrets, ...changes, dataDir };
    const core = await openCore(config, opened, { role, log: silentLog });
    for (const reconciler of listReconcilers(core)) await reconciler.reconcile();
    await openLog(core);
    return new TestCore({ server, core, config, stack: opened.move() });
  }

  get redisUrl(): string {
    return this.#config.redisUrl;
  }

  /** The objects of another process over the same Redis and files. */
  async another(role: RedisRole = 'worker'): Promise<Core> {
    const core = await openCore(this.#config, this.#stack, { role, log: silentLog });
    await openLog(core);
    return core;
  }

  /** The tenant, which is made when it is asked for first. */
  async scope(id = 'acme'): Promise<TenantScope> {
    const { tenants } = this.core;
    return tenants.open(id).catch(async () => tenants.create(id));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** A Redis that stands still for a second and a half knows of no log; then it is opened a little later. */
async function openLog({ accepted }: Core): Promise<void> {
  const isOpen = async (): Promise<boolean> => {
    await accepted.open();
    return accepted.takes(0);
  };
  // Where a test keeps Redis from it, each turn gets its file.
  await eventually(isOpen, { timeoutMs: LOG_WITHIN_MS }).catch(() => undefined);
}

/** One for each slot. */
export function listReconcilers({ redis, queue, tenants }: Core): TurnReconciler[] {
  return listTurnReconcilers({ redis, ...queue, tenants, log: silentLog });
}

/** Compares this process' tenants with Redis; `start` repeats it as a worker does, and `stop` ends that. */
export function newReconciler({ redis, queue, tenants }: Core): TurnReconciler {
  return new TurnReconciler({ redis, ...queue, tenants, log: silentLog });
}
