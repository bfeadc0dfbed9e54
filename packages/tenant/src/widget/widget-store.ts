import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { AppError, WidgetBody, WidgetRecord, widgetKeyPrefix, type WidgetTeam, type WidgetView } from '@concierge/contract';
import { assertNotLater, RecordFolder, StatCache, type FolderSync, type Parsed } from '@concierge/files';
import { isSameSecret, KeyedMutex, type Log } from '@concierge/runtime';
import type { TenantSecrets } from '../tenant-secrets.ts';

const fileName = 'widget';
const secretField = 'widget.secret';
const damaged = 'its file is damaged; set it up again';
// bounded-expression: a constant, of bounded length
const tenantOfKey = new RegExp(`^${widgetKeyPrefix}(?<tenantId>[a-z0-9-]{1,63})_[0-9a-f]{32}$`, 'u');

/** The tenant whose pages carry this key, if it is one at all; the tenant's own record decides. */
export function tenantOfWidgetKey(key: string): string | undefined {
  return tenantOfKey.exec(key)?.groups?.['tenantId'];
}

/** What answers visitors need of the settings. */
export interface OpenWidget extends Pick<WidgetBody, 'requireSenderToken' | 'appearance' | 'display' | 'team'> {
  readonly origins: readonly string[];
  /** Opened; null when there is none, or none that can be read. */
  readonly secret: string | null;
}

export interface WidgetStoreOptions {
  readonly tenantId: string;
  /** tenants/<id>/widget */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  readonly log: Log;
}

/**
 * A tenant's web widget: one file, in a separate folder so that commands in the sandbox cannot put another in its
 * place.
 */
export class WidgetStore {
  readonly #options: WidgetStoreOptions;
  readonly #records: RecordFolder<typeof WidgetRecord>;
  readonly #cache = new StatCache<Parsed<WidgetRecord>>(1);
  readonly #writers = new KeyedMutex();

  constructor(options: WidgetStoreOptions) {
    const { tenantId, folder, folders, log } = options;
    this.#options = options;
    this.#records = new RecordFolder({ tenantId, folder, folders, log, schema: WidgetRecord, names: /^widget$/u });
  }

  async view(): Promise<WidgetView> {
    const read = await this.#read();
    if (read?.status === 'ok') return this.#toWidgetView(read.value);
    const problem = read === undefined ? null : read.isLater === true ? read.reason : damaged;
    return { ...WidgetBody.parse({}), key: null, secret: 'unset', updatedAt: null, problem };
  }

  /** When staff answers; null where nothing was set, or it cannot be read. */
  async team(): Promise<WidgetTeam | null> {
    const read = await this.#read();
    return read?.status === 'ok' ? read.value.team : null;
  }

  /** In force when it returns. Key and secret stay; the first time a key is made. @throws AppError invalid_request */
  async put(body: WidgetBody): Promise<WidgetView> {
    return this.#change((before) => {
      if (body.requireSenderToken && (before?.sealedSecret ?? null) === null)
        throw new AppError('invalid_request', 'Make a secret that signs sender tokens first: no visitor could show one.', {
          errors: [{ path: 'requireSenderToken', message: 'needs a secret' }],
        });
      return { ...body, key: before?.key ?? this.#newKey(), sealedSecret: before?.sealedSecret ?? null };
    });
  }

  /** The old key is refused from now on. */
  async rotateKey(): Promise<WidgetView> {
    return this.#change((before) => ({ ...toWidgetBody(before), key: this.#newKey(), sealedSecret: before?.sealedSecret ?? null }));
  }

  /** The secret, the only time it is ever seen. @throws AppError internal_error without SECRETS_KEY */
  async rotateSecret(): Promise<string> {
    const secret = `wsec_${randomBytes(32).toString('base64url')}`;
    const sealedSecret = this.#options.secrets.seal(secretField, secret);
    await this.#change((before) => ({ ...toWidgetBody(before), key: before?.key ?? this.#newKey(), sealedSecret }));
    return secret;
  }

  /**
   * undefined for any key but the one in force, and while the widget is not enabled. One system call when nothing has
   * changed.
   */
  async open(key: string): Promise<OpenWidget | undefined> {
    const read = await this.#read();
    if (read !== undefined) assertNotLater(read, this.#path);
    if (read?.status !== 'ok') return undefined;
    const { sealedSecret, enabled, ...settings } = read.value;
    if (!isSameSecret(key, settings.key) || !enabled) return undefined;
    const { origins, requireSenderToken, appearance, display, team } = settings;
    const secret = sealedSecret === null ? null : (this.#opened(sealedSecret) ?? null);
    return { origins, requireSenderToken, appearance, display, team, secret };
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }

  async #read(): Promise<Parsed<WidgetRecord> | undefined> {
    return this.#cache.get(this.#path, async () => (await this.#records.read(fileName)) ?? { status: 'broken', reason: 'has just gone' });
  }

  async #change(
    next: (before: WidgetRecord | undefined) => Omit<WidgetRecord, 'version' | 'createdAt' | 'updatedAt'>,
  ): Promise<WidgetView> {
    return this.#writers.run(fileName, async () => {
      const before = await this.#records.find(fileName);
      const at = new Date().toISOString();
      const record: WidgetRecord = { ...before, version: 1, ...next(before), createdAt: before?.createdAt ?? at, updatedAt: at };
      await this.#records.put(fileName, record);
      this.#cache.forget(this.#path);
      return this.#toWidgetView(record);
    });
  }

  #toWidgetView(record: WidgetRecord): WidgetView {
    const { key, sealedSecret, updatedAt } = record;
    const secret = sealedSecret === null ? 'unset' : this.#opened(sealedSecret) === undefined ? 'unreadable' : 'set';
    return { ...toWidgetBody(record), key, secret, updatedAt, problem: null };
  }

  #opened(sealed: string): string | undefined {
    try {
      return this.#options.secrets.open(secretField, sealed);
    } catch {
      return undefined;
    }
  }

  #newKey(): string {
    return `${widgetKeyPrefix}${this.#options.tenantId}_${randomBytes(16).toString('hex')}`;
  }

  get #path(): string {
    return join(this.#options.folder, `${fileName}.json`);
  }
}

/** What an owner sets of it; all of the defaults for nothing. */
export function toWidgetBody(record: WidgetBody | undefined): WidgetBody {
  if (record === undefined) return WidgetBody.parse({});
  const { enabled, origins, requireSenderToken, appearance, display, team } = record;
  return { enabled, origins, requireSenderToken, appearance, display, team };
}
