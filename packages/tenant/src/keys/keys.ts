import { hash, randomBytes, createHmac, timingSafeEqual } from 'node:crypto';
import { stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, KeyScope, TenantId, type KeyView, keyPrefix } from '@concierge/contract';
import {
  isSystemError,
  RecordFolder,
  type FolderSync,
  parseJson,
  type RecordChange,
  type RecordChanges,
  unlessLater,
} from '@concierge/files';
import { background, isSameSecret, KeyedMutex, type Log } from '@concierge/runtime';
import type { LRUCache } from 'lru-cache';
import { z } from 'zod';

const signatureBytes = 32;
const maxTokenCharacters = 1024;
/** So that a signature made for something else with the same secret is none here. */
const purpose = 'concierge api key 1\n';

const keyIdPattern = /^k_[0-9a-f]{16}$/u;

const KeyClaims = z.strictObject({
  keyId: z.string().regex(keyIdPattern),
  accountId: TenantId,
  scopes: z.array(KeyScope).min(1),
  issuedAt: z.iso.datetime(),
});
/** What a key states about itself. It finds the key's record; the record is the authority. */
export type KeyClaims = z.infer<typeof KeyClaims>;

/**
 * `ck_live_` and then, as one base64url text without padding: the claims as JSON, followed by the 32 bytes of their
 * HMAC-SHA256. The signature has a fixed length, so nothing needs to stand between the two.
 */
export function encodeKey(claims: KeyClaims, secret: string): string {
  const payload = Buffer.from(JSON.stringify(claims));
  return keyPrefix + Buffer.concat([payload, sign(payload, secret)]).toString('base64url');
}

/**
 * undefined for anything that was not made by `encodeKey` with this secret, other spellings of the same bytes included.
 */
export function decodeKey(raw: string, secret: string): KeyClaims | undefined {
  if (!raw.startsWith(keyPrefix) || raw.length > maxTokenCharacters) return undefined;
  const text = raw.slice(keyPrefix.length);
  const bytes = Buffer.from(text, 'base64url');
  // base64 has several spellings for the same bytes and the decoder ignores what it does not know: only one is ours.
  if (bytes.length <= signatureBytes || bytes.toString('base64url') !== text) return undefined;
  const payload = bytes.subarray(0, -signatureBytes);
  if (!timingSafeEqual(bytes.subarray(-signatureBytes), sign(payload, secret))) return undefined;
  const claims = parseJson(KeyClaims, payload.toString('utf8'));
  return claims.status === 'ok' ? claims.value : undefined;
}

function sign(payload: Uint8Array, secret: string): Buffer {
  return createHmac('sha256', secret).update(purpose).update(payload).digest();
}

const usedEveryMs = 60_000;
/** Compared against when there is no record, so that an unknown key costs what a known one costs. */
const noHash = '0'.repeat(64);

/** keys/<id>.json */
export const KeyRecord = z.strictObject({
  version: z.literal(1),
  id: z.string().regex(keyIdPattern),
  accountId: TenantId,
  /** SHA-256 of the whole key, hex. The key itself is shown once and kept nowhere. */
  hash: z.string().regex(/^[0-9a-f]{64}$/u),
  label: z.string(),
  scopes: z.array(KeyScope).min(1),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime().nullable(),
  revokedAt: z.iso.datetime().nullable(),
});
export type KeyRecord = z.infer<typeof KeyRecord>;

/**
 * Records as they were read at most `limits.keyCacheMs` ago; null where there is none. One for all tenants of a
 * process. By the path of the record's file.
 */
export type KeyRecordCache = LRUCache<string, { readonly record: Promise<KeyRecord | null> }>;

export interface KeysOptions {
  readonly tenantId: string;
  /** tenants/<id>/keys */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly secret: string;
  readonly cache: KeyRecordCache;
  readonly changes: RecordChanges;
  readonly log: Log;
}

export interface KeyRequest {
  readonly label?: string;
  readonly scopes: readonly KeyScope[];
  /** ISO 8601; never, when left out. */
  readonly expiresAt?: string | null | undefined;
}

export interface NewKey {
  readonly id: string;
  /** The only time it is ever seen. */
  readonly key: string;
  readonly scopes: KeyScope[];
}

/** One tenant's API keys: a file each, so that no read-modify-write meets another's change. */
export class Keys {
  readonly #options: KeysOptions;
  readonly #records: RecordFolder<typeof KeyRecord>;
  readonly #usedAtMs = new Map<string, number>();
  readonly #rotations = new KeyedMutex();

  constructor(options: KeysOptions) {
    const { tenantId, folder, folders, changes, log } = options;
    this.#options = options;
    const place = { tenantId, folder, folders, log };
    this.#records = new RecordFolder({
      ...place,
      schema: KeyRecord,
      names: keyIdPattern,
      // All that ever changes of a key is that it is revoked.
      shared: { changes, revisionOf: ({ revokedAt }) => revokedAt ?? '', toReplaced: toRevoked },
    });
  }

  /**
   * `granter`: the scopes of the caller; the operator has them all.
   * @throws AppError scope_required, invalid_request
   */
  async create(request: KeyRequest, granter: readonly KeyScope[]): Promise<NewKey> {
    const scopes = KeyScope.options.filter((scope) => request.scopes.includes(scope));
    if (scopes.length === 0)
      throw new AppError('invalid_request', 'A key needs a scope.', { errors: [{ path: 'scopes', message: 'must name a scope' }] });
    if (!scopes.every((scope) => covers(granter, scope)))
      throw new AppError('scope_required', 'A key cannot have more rights than the key that makes it.');
    const id = `k_${randomBytes(8).toString('hex')}`;
    const createdAt = new Date().toISOString();
    const { tenantId, secret } = this.#options;
    const key = encodeKey({ keyId: id, accountId: tenantId, scopes, issuedAt: createdAt }, secret);
    const record: KeyRecord = {
      version: 1,
      id,
      accountId: tenantId,
      hash: hash('sha256', key),
      label: request.label ?? '',
      scopes,
      createdAt,
      expiresAt: request.expiresAt ?? null,
      revokedAt: null,
    };
    await this.#records.create(id, record);
    return { id, key, scopes };
  }

  /** Oldest first. */
  async list(): Promise<KeyView[]> {
    const views: KeyView[] = [];
    for (const id of await this.#records.names()) {
      const record = await unlessLater(this.#read(id));
      if (record != null) views.push(await this.#view(record));
    }
    return views.toSorted((a, b) => (a.createdAt === b.createdAt ? a.id.localeCompare(b.id) : a.createdAt.localeCompare(b.createdAt)));
  }

  /**
   * Refused here at once, elsewhere as soon as it is told, or within a second or two. A second time is no error.
   * @throws AppError not_found
   */
  async revoke(id: string): Promise<KeyView> {
    const record = await this.#existing(id);
    const revoked = { ...record, revokedAt: record.revokedAt ?? new Date().toISOString() };
    await this.#records.put(id, revoked);
    this.#options.cache.delete(this.#cacheKey(id));
    return this.#view(revoked);
  }

  /**
   * A new key with the old one's label, scopes and end; then the old one is revoked. Of two at the same moment one
   * makes a key, and in two processes each may.
   * @throws AppError not_found, scope_required, conflict (it is revoked)
   */
  async rotate(id: string, granter: readonly KeyScope[]): Promise<NewKey> {
    return this.#rotations.run(id, async () => {
      const { label, scopes, expiresAt, revokedAt } = await this.#existing(id);
      if (revokedAt !== null) throw new AppError('conflict', 'The key has been revoked.');
      const next = await this.create({ label, scopes, expiresAt }, granter);
      await this.revoke(id);
      return next;
    });
  }

  /**
   * Whether a key whose signature is good is in force, by its record. An unknown key, and one of a tenant that does not
   * exist, costs the same work. @throws AppError invalid_key, revoked_key
   */
  async verify(raw: string, claims: KeyClaims): Promise<KeyRecord> {
    const record = await this.#cached(claims.keyId);
    const isSame = isSameSecret(hash('sha256', raw), record?.hash ?? noHash);
    if (record === null || !isSame || record.accountId !== claims.accountId) throw new AppError('invalid_key');
    if (record.revokedAt !== null) throw new AppError('revoked_key');
    if (record.expiresAt !== null && Date.parse(record.expiresAt) <= Date.now())
      throw new AppError('invalid_key', 'The API key has expired.');
    this.#noteUse(record.id);
    return record;
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }

  async #existing(id: string): Promise<KeyRecord> {
    const record = await this.#read(id);
    if (record === null) throw new AppError('not_found', 'There is no such key.');
    return record;
  }

  async #cached(id: string): Promise<KeyRecord | null> {
    const { cache } = this.#options;
    const key = this.#cacheKey(id);
    const cached = cache.get(key);
    if (cached !== undefined) return cached.record;
    const record = this.#read(id);
    cache.set(key, { record });
    try {
      return await record;
    } catch (error) {
      cache.delete(key);
      throw error;
    }
  }

  async #read(id: string): Promise<KeyRecord | null> {
    const record = await this.#records.find(id);
    if (record === undefined || record.id === id) return record ?? null;
    this.#options.log.error({ tenantId: this.#options.tenantId, keyId: id }, 'a key record names another key and is refused');
    return null;
  }

  async #view(record: KeyRecord): Promise<KeyView> {
    const used = await stat(this.#usedPath(record.id)).catch(() => undefined);
    const { id, label, scopes, createdAt, expiresAt, revokedAt } = record;
    return { id, label, scopes, createdAt, lastUsedAt: used === undefined ? null : used.mtime.toISOString(), expiresAt, revokedAt };
  }

  /**
   * The time of last use is the time of a file beside the record: the record itself is only written when it changes.
   */
  #noteUse(id: string): void {
    const nowMs = Date.now();
    if (nowMs - (this.#usedAtMs.get(id) ?? 0) < usedEveryMs) return;
    this.#usedAtMs.set(id, nowMs);
    background(touch(this.#usedPath(id), new Date(nowMs)), this.#options.log);
  }

  #usedPath(id: string): string {
    return join(this.#options.folder, `${id}.used`);
  }

  #cacheKey(id: string): string {
    return join(this.#options.folder, `${id}.json`);
  }
}

function toRevoked(record: KeyRecord, { revision }: RecordChange): KeyRecord {
  return { ...record, revokedAt: revision };
}

/** `admin` is everything of the tenant. */
function covers(scopes: readonly KeyScope[], scope: KeyScope): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}

async function touch(path: string, at: Date): Promise<void> {
  try {
    await utimes(path, at, at);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw error;
    await writeFile(path, '', { mode: 0o600 });
  }
}
