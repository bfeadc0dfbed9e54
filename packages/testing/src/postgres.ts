import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { mustRunAll } from './config.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';

const START_TIMEOUT_MS = 120_000;
const packagedVersions = '/usr/lib/postgresql';
const role = 'concierge';

interface SystemUser {
  readonly uid?: number;
  readonly gid?: number;
}

/**
 * Whether this machine has a PostgreSQL server, for `describe.skip`: reports loudly on stderr what is left out when it
 * has none.
 * @throws with CI=true, where nothing may be left out
 */
export function canRunPostgres(): boolean {
  if (binariesFolder() !== undefined) return true;
  const missing = `no PostgreSQL server under ${packagedVersions}: every test that needs one is SKIPPED (apt install postgresql)`;
  if (mustRunAll) throw new Error(missing);
  process.stderr.write(`\n${missing}\n\n`);
  return false;
}

/** A cluster of a test's own, thrown away at the end. It is as fast as it can be because nothing has to outlive it. */
export async function startPostgres(): Promise<TestPostgres> {
  return TestPostgres.start();
}

/** A real PostgreSQL on a port of its own. `url` is a database whose owner is no superuser, as in production. */
export class TestPostgres implements AsyncDisposable {
  readonly #folder: string;
  readonly #port: number;
  #process: ChildProcess | undefined;
  #databases = 0;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
  }

  static async start(): Promise<TestPostgres> {
    const postgres = new TestPostgres(await mkdtemp(join(tmpdir(), 'concierge-postgres-')), await freePort());
    try {
      await postgres.#initialise();
      await postgres.start();
      await postgres.asAdmin(`create role ${role} login nosuperuser nobypassrls`, `create database ${role} owner ${role}`);
    } catch (error) {
      await postgres.stop();
      throw error;
    }
    return postgres;
  }

  get url(): string {
    return this.#buildUrl(role, role);
  }

  /** The superuser, for whom row-level security does not exist. */
  get adminUrl(): string {
    return this.#buildUrl('admin', role);
  }

  /** Another empty database in the same cluster; its URL, for the same role. */
  async createDatabase(): Promise<string> {
    this.#databases += 1;
    const name = `${role}_${String(this.#databases)}`;
    await this.asAdmin(`create database ${name} owner ${role}`);
    return this.#buildUrl(role, name);
  }

  async asAdmin(...statements: string[]): Promise<void> {
    const client = new Client({ connectionString: this.#buildUrl('admin', 'postgres') });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }

  /** All rows of a database, as text, whichever policies hide them. */
  async readAll(url: string): Promise<string> {
    const client = new Client({ connectionString: this.#buildUrl('admin', new URL(url).pathname.slice(1)) });
    await client.connect();
    try {
      const texts: string[] = [];
      const { rows: tables } = await client.query<{ name: string }>(
        "select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
      );
      for (const { name } of tables) {
        const { rows } = await client.query<{ row: string }>(`select t::text as row from ${name} as t`);
        texts.push(...rows.map(({ row }) => row));
      }
      return texts.join('\n');
    } finally {
      await client.end();
    }
  }

  /** Starts it (again) over the same data. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      port: String(this.#port),
      unix_socket_directories: this.#folder,
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      shared_buffers: '32MB',
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const child = spawn(findProgram('postgres'), ['-D', join(this.#folder, 'data'), ...flags], { stdio: 'ignore', ...unprivileged() });
    this.#process = child;
    process.on('exit', this.#kill);
    await eventually(async () => this.#answers(), { timeoutMs: START_TIMEOUT_MS });
  }

  /** Ends it at once and keeps its data: every connection is lost. */
  async interrupt(): Promise<void> {
    const child = this.#process;
    process.off('exit', this.#kill);
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGQUIT');
    await exited;
  }

  async stop(): Promise<void> {
    await this.interrupt();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  readonly #kill = (): void => {
    this.#process?.kill('SIGQUIT');
  };

  async #initialise(): Promise<void> {
    const { uid, gid } = unprivileged();
    await chmod(this.#folder, 0o700);
    if (uid !== undefined && gid !== undefined) await chown(this.#folder, uid, gid);
    const flags = ['--username=admin', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync', '--no-instructions'];
    await promisify(execFile)(findProgram('initdb'), ['-D', join(this.#folder, 'data'), ...flags], { cwd: this.#folder, uid, gid });
  }

  async #answers(): Promise<boolean> {
    if (this.#process?.exitCode !== null) throw new Error('postgres did not start');
    const client = new Client({ connectionString: this.#buildUrl('admin', 'postgres') });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return true;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  #buildUrl(user: string, database: string): string {
    return `postgres://${user}@127.0.0.1:${String(this.#port)}/${database}`;
  }
}

/** Debian keeps the server's programs off the PATH, one folder for each version. */
function binariesFolder(): string | undefined {
  try {
    const newest = readdirSync(packagedVersions)
      .filter((version) => /^\d+$/u.test(version))
      .toSorted((one, other) => Number(other) - Number(one));
    return newest.map((version) => join(packagedVersions, version, 'bin')).find((folder) => readdirSync(folder).includes('initdb'));
  } catch {
    return undefined;
  }
}

function findProgram(name: string): string {
  const folder = binariesFolder();
  if (folder === undefined) throw new Error(`no PostgreSQL server under ${packagedVersions}`);
  return join(folder, name);
}

/** PostgreSQL refuses to run as root. */
function unprivileged(): SystemUser {
  if (process.getuid?.() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const user = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  if (user === undefined) throw new Error('no user to run PostgreSQL as');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}
