import type { IndexStore } from '@concierge/index';
import type { Tenants, TenantScope, TenantsOptions } from '@concierge/tenant';
import { openIndexStore, silentLog, type IndexUnderTest } from './index-backends.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const testSecrets = { keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40) } as const;

export interface TestTenantsOptions extends Partial<Omit<TenantsOptions, 'index'>> {
  /** Another index than SQLite files beside the tenants' own. */
  readonly database?: IndexUnderTest;
}

interface TestTenantsParts {
  readonly options: TestTenantsOptions;
  readonly openTenants: (given: TenantsOptions) => Tenants;
  readonly stack: AsyncDisposableStack;
}

/** Tenants over real files and a real index, in a folder of their own; all of it is gone at the end. */
export class TestTenants implements AsyncDisposable {
  readonly dataDir: string;
  readonly index: IndexStore;
  readonly tenants: Tenants;
  readonly #parts: TestTenantsParts;

  private constructor(dataDir: string, index: IndexStore, parts: TestTenantsParts) {
    this.dataDir = dataDir;
    this.index = index;
    this.#parts = parts;
    this.tenants = this.over(index);
  }

  static async start(options: TestTenantsOptions = {}): Promise<TestTenants> {
    await using opened = new AsyncDisposableStack();
    const dataDir = options.dataDir ?? opened.use(await temporaryDirectory()).path;
    const index = await openStore(dataDir, options, opened);
    // Loaded where it is used: most files that import this package have no tenants.
    const { Tenants: Opened } = await import('@concierge/tenant');
    const openTenants = (given: TenantsOptions): Tenants => new Opened(given);
    return new TestTenants(dataDir, index, { options, openTenants, stack: opened.move() });
  }

  /** The tenant, which is made when it is asked for first. */
  async scope(id = 'acme'): Promise<TenantScope> {
    return this.tenants.open(id).catch(async () => this.tenants.create(id));
  }

  /** The same files as another process sees them: with an index store and caches of its own. */
  async another(changes: Partial<TenantsOptions> = {}): Promise<Tenants> {
    const { options, stack } = this.#parts;
    return this.over(await openStore(this.dataDir, options, stack), changes);
  }

  /** The same files over an index of the test's. */
  over(index: IndexStore, changes: Partial<TenantsOptions> = {}): Tenants {
    const { database: _, ...options } = this.#parts.options;
    return this.#parts.openTenants({ ...testSecrets, log: silentLog, ...options, dataDir: this.dataDir, index, ...changes });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.stack.disposeAsync();
  }
}

async function openStore(dataDir: string, { database }: TestTenantsOptions, stack: AsyncDisposableStack): Promise<IndexStore> {
  // A database under test closes its stores itself.
  if (database !== undefined) return database.open();
  return stack.adopt(await openIndexStore(undefined, dataDir), async (store) => store.close());
}
