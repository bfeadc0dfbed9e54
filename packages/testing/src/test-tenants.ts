import { openIndex, type IndexStore } from '@concierge/index';
import { Tenants, type TenantScope, type TenantsOptions } from '@concierge/tenant';
import { silentLog, type IndexUnderTest } from './index-backends.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const testSecrets = { keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40) } as const;

export interface TestTenantsOptions extends Partial<Omit<TenantsOptions, 'index'>> {
  /** Another index than SQLite files beside the tenants' own. */
  readonly database?: IndexUnderTest;
}

/** Tenants over real files and a real index, in a folder of their own; all of it is gone at the end. */
export class TestTenants implements AsyncDisposable {
  readonly dataDir: string;
  readonly index: IndexStore;
  readonly tenants: Tenants;
  readonly #options: TestTenantsOptions;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    dataDir: string,
    index: IndexStore,
    { options, stack }: { options: TestTenantsOptions; stack: AsyncDisposableStack },
  ) {
    this.dataDir = dataDir;
    this.index = index;
    this.#options = options;
    this.#stack = stack;
    this.tenants = this.over(index);
  }

  static async start(options: TestTenantsOptions = {}): Promise<TestTenants> {
    await using opened = new AsyncDisposableStack();
    const dataDir = options.dataDir ?? opened.use(await temporaryDirectory()).path;
    const index = await openStore(dataDir, options, opened);
    return new TestTenants(dataDir, index, { options, stack: opened.move() });
  }

  /** The tenant, which is made when it is asked for first. */
  async scope(id = 'acme'): Promise<TenantScope> {
    return this.tenants.open(id).catch(async () => this.tenants.create(id));
  }

  /** The same files as another process sees them: with an index store and caches of its own. */
  async another(changes: Partial<TenantsOptions> = {}): Promise<Tenants> {
    return this.over(await openStore(this.dataDir, this.#options, this.#stack), changes);
  }

  /** The same files over an index of the test's. */
  over(index: IndexStore, changes: Partial<TenantsOptions> = {}): Tenants {
    const { database: _, ...options } = this.#options;
    return new Tenants({ ...testSecrets, log: silentLog, ...options, dataDir: this.dataDir, index, ...changes });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

async function openStore(dataDir: string, { database }: TestTenantsOptions, stack: AsyncDisposableStack): Promise<IndexStore> {
  // A database under test closes its stores itself.
  if (database !== undefined) return database.open();
  return stack.adopt(await openIndex({ databaseUrl: undefined, dataDir, log: silentLog }), async (store) => store.close());
}
