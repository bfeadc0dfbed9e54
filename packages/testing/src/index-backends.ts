import type { IndexStore } from '@concierge/index';
import { createLog, type Log } from '@concierge/runtime/process';
import { canRunPostgres, startPostgres, type TestPostgres } from './postgres.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const silentLog: Log = createLog({ service: 'test', level: 'silent' });

/** One database with all that belongs to it; `open` opens another store over the same one, as another process would. */
export interface IndexUnderTest extends AsyncDisposable {
  open(): Promise<IndexStore>;
}

export interface IndexBackendUnderTest {
  readonly name: string;
  readonly available: boolean;
  start(): Promise<IndexUnderTest>;
}

const sqlite: IndexBackendUnderTest = {
  name: 'SQLite',
  available: true,
  async start() {
    const folder = await temporaryDirectory();
    return tracked({
      open: async () => openIndexStore(undefined, folder.path),
      end: async () => folder[Symbol.asyncDispose](),
    });
  },
};

let cluster: Promise<TestPostgres> | undefined;

const postgres: IndexBackendUnderTest = {
  name: 'PostgreSQL',
  available: canRunPostgres(),
  async start() {
    const url = await (await (cluster ??= startPostgres())).createDatabase();
    return tracked({
      open: async () => openIndexStore(url, '/nonexistent'),
      end: async () => Promise.resolve(),
    });
  },
};

export const indexBackends = [sqlite, postgres];

/** Once per test file, at its end. */
export async function stopIndexBackends(): Promise<void> {
  const started = cluster;
  // First of all: one that could not be started is none for the next test file of this process.
  cluster = undefined;
  await (await started)?.stop();
}

/** Loaded where it is opened: most files that import this package open no index. */
export async function openIndexStore(databaseUrl: string | undefined, dataDir: string): Promise<IndexStore> {
  const { openIndex } = await import('@concierge/index');
  return openIndex({ databaseUrl, dataDir, log: silentLog });
}

function tracked({ open, end }: { open: () => Promise<IndexStore>; end: () => Promise<void> }): IndexUnderTest {
  const stores: IndexStore[] = [];
  return {
    async open() {
      const store = await open();
      stores.push(store);
      return store;
    },
    async [Symbol.asyncDispose]() {
      for (const store of stores) await store.close();
      await end();
    },
  };
}
