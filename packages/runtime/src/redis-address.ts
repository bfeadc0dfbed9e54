import { readFileSync } from 'node:fs';
import type { RedisOptions } from 'ioredis';
import type { NodeAddress } from './cluster/cluster-map.ts';
import { ConfigError } from './environment.ts';

/** How Redis is reached, and as whom. */
export type RedisAddress = Pick<
  RedisOptions,
  | 'path'
  | 'host'
  | 'port'
  | 'family'
  | 'db'
  | 'username'
  | 'password'
  | 'tls'
  | 'sentinels'
  | 'name'
  | 'sentinelUsername'
  | 'sentinelPassword'
  | 'sentinelTLS'
  | 'enableTLSForSentinelMode'
> & {
  /** Nodes of a Redis Cluster, which know the others. */
  readonly cluster?: readonly NodeAddress[];
};

const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;
const addressError =
  'must be redis://host, rediss://host, unix:/path, redis+sentinel://host,host,host/master or redis+cluster://host,host,host (rediss+… with TLS)';

const addressPattern =
  /^(?<secure>rediss|redis)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^@/?#]*))?@)?(?<hosts>[^@/?#]+)(?<path>\/[^?#]*)?(?:\?(?<query>[^#]*))?$/u;

/** Undefined: it is none; said with `addressError`. */
function matchAddress(url: string): Record<string, string | undefined> | undefined {
  return addressPattern.exec(url)?.groups;
}

/** A line about an address that is none; undefined: it is one, as far as its text tells. */
export function findAddressProblem(url: string): string | undefined {
  if (url.startsWith('unix:/')) return undefined;
  const found = matchAddress(url);
  if (found === undefined) return addressError;
  const [name] = readPath(found['path']);
  if (![found['user'], found['password'], name].every(isDecodable)) return `${addressError}; a percent sign in it is written %25`;
  if (found['kind'] === 'sentinel' && name === undefined) return `${addressError}; the name of the master is missing`;
  if (found['kind'] === 'cluster' && name !== undefined) return `${addressError}; a cluster has one database, and no name`;
  return undefined;
}

/** A password that was put into an address as it is may have a percent sign of its own. */
function isDecodable(text = ''): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The settings in an address. Sentinels: `redis+sentinel://[user[:password]@]host[:port][,host…]/MASTER[/db]`, whose
 * user and password are those of the servers; `?sentinelUser=`, `?sentinelPassword=` and `?sentinelPasswordFile=` those
 * of the sentinels. TLS (`rediss`): `?ca=`, `?cert=` and `?key=` name files in PEM. `?family=`: 4, 6, or 0 for either.
 * @throws ConfigError for an address that is none, or a file that cannot be read
 */
export function parseRedisAddress(url: string): RedisAddress {
  if (url.startsWith('unix:')) return { path: url.slice('unix:'.length).replace(/\?slots=\d+$/u, '') };
  const found = matchSoundAddress(url);
  const query = new URLSearchParams(found['query'] ?? '');
  const tls = found['secure'] === 'rediss' ? readTls(query) : undefined;
  const hosts = found['hosts'] ?? '';
  const path = readPath(found['path']);
  const common = { ...readLogin(found), ...readFamily(query), ...(tls !== undefined && { tls }) };
  if (found['kind'] === 'cluster') return { cluster: hosts.split(',').map((host) => readHost(host, REDIS_PORT)), ...common };
  if (found['kind'] === undefined) return { ...readHost(hosts, REDIS_PORT), ...readDatabase(path[0]), ...common };
  return {
    sentinels: hosts.split(',').map((host) => readHost(host, SENTINEL_PORT)),
    name: decodeURIComponent(path[0] ?? ''),
    ...readDatabase(path[1]),
    ...common,
    ...readSentinelLogin(query),
    ...(tls !== undefined && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

function matchSoundAddress(url: string): Record<string, string | undefined> {
  const problem = findAddressProblem(url);
  const found = matchAddress(url);
  if (problem !== undefined || found === undefined) throw new ConfigError([`REDIS_URL: ${problem ?? addressError}`]);
  return found;
}

/** The address with the number of slots over which tenants are spread (REDIS_SLOTS). */
export function withSlots(url: string, slots: number): string {
  const plain = url.replace(/[?&]slots=\d+$/u, '');
  return slots === 1 ? plain : `${plain}${plain.includes('?') ? '&' : '?'}slots=${String(slots)}`;
}

export function readSlots(url: string): number {
  return Number(/[?&]slots=(\d+)$/u.exec(url)?.[1] ?? 1);
}

function readLogin({ user, password }: Record<string, string | undefined>): Pick<RedisAddress, 'username' | 'password'> {
  return {
    ...(isGiven(user) && { username: decodeURIComponent(user) }),
    ...(isGiven(password) && { password: decodeURIComponent(password) }),
  };
}

function readFamily(query: URLSearchParams): Pick<RedisAddress, 'family'> {
  const family = query.get('family');
  return family === null ? {} : { family: Number(family) };
}

function readSentinelLogin(query: URLSearchParams): Pick<RedisAddress, 'sentinelUsername' | 'sentinelPassword'> {
  const sentinelUsername = query.get('sentinelUser');
  const sentinelPassword = query.get('sentinelPassword') ?? readGivenFile(query, 'sentinelPasswordFile')?.trim();
  return { ...(sentinelUsername !== null && { sentinelUsername }), ...(sentinelPassword !== undefined && { sentinelPassword }) };
}

function readDatabase(text: string | undefined): { readonly db?: number } {
  return text === undefined ? {} : { db: Number(text) };
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}

function readPath(path = ''): string[] {
  return path.split('/').filter((part) => part !== '');
}

/** An address of IPv6 stands in brackets. */
function readHost(text: string, usual: number): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/u.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new ConfigError([`REDIS_URL: ${addressError}; ${text} is no host`]);
  return { host, port: port === undefined ? usual : Number(port) };
}

/** Without files: the authorities that Node knows, and no certificate of our own. */
function readTls(query: URLSearchParams): { readonly ca?: string; readonly cert?: string; readonly key?: string } {
  const [ca, cert, key] = ['ca', 'cert', 'key'].map((name) => readGivenFile(query, name));
  return { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
}

function readGivenFile(query: URLSearchParams, name: string): string | undefined {
  const path = query.get(name);
  if (path === null) return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch {
    throw new ConfigError([`REDIS_URL: the file that ${name} names cannot be read (${path})`]);
  }
}
