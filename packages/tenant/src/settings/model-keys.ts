import { join } from 'node:path';
import { AppError, limits, ModelKeyBody, ModelKeyView, ModelProviderName } from '@concierge/contract';
import { RecordFolder, type FolderSync, type Parsed } from '@concierge/files';
import { KeyedMutex, type Log } from '@concierge/runtime';
import { z } from 'zod';
import type { TenantSecrets } from '../tenant-secrets.ts';

/** settings/model-keys/<provider>.json; the key is sealed. */
const ModelKeyRecord = z.strictObject({
  version: z.literal(1),
  ...ModelKeyView.pick({ provider: true, createdAt: true, updatedAt: true }).shape,
  sealed: z.string(),
});
type ModelKeyRecord = z.infer<typeof ModelKeyRecord>;

const providerNames = { test: (name: string): boolean => ModelProviderName.safeParse(name).success };

/** A shorter key shows nothing of itself. */
const HINTED_MIN_CHARACTERS = 16;
const HINT_CHARACTERS = 4;

export interface ModelKeysOptions {
  readonly tenantId: string;
  /** tenants/<id>/settings */
  readonly store: string;
  readonly folders: FolderSync;
  readonly secrets: TenantSecrets;
  readonly log: Log;
}

/** A tenant's own keys for model providers, a file each. They are opened for the model's adapter alone. */
export class ModelKeys {
  readonly #secrets: TenantSecrets;
  readonly #records: RecordFolder<typeof ModelKeyRecord>;
  readonly #writers = new KeyedMutex();

  constructor({ secrets, ...place }: ModelKeysOptions) {
    this.#secrets = secrets;
    const folder = join(place.store, 'model-keys');
    this.#records = new RecordFolder({ ...place, folder, schema: ModelKeyRecord, names: providerNames });
  }

  /** By provider; those that cannot be used with the reason. */
  async list(): Promise<ModelKeyView[]> {
    const views: ModelKeyView[] = [];
    for (const provider of await this.#records.names()) {
      const read = await this.#records.read(provider);
      if (read !== undefined) views.push(this.#view(provider, read));
    }
    return views.toSorted((one, other) => (one.provider < other.provider ? -1 : 1));
  }

  /**
   * In place of the one before, if there was one; on disk when it returns.
   * @throws AppError invalid_request, when it is one too many
   */
  async put(provider: string, body: ModelKeyBody): Promise<ModelKeyView> {
    const { apiKey } = ModelKeyBody.parse(body);
    return this.#writers.run('put', async () => {
      const [before, names] = [await this.#records.read(provider), await this.#records.names()];
      if (before === undefined && names.length >= limits.modelKeysMax)
        throw new AppError('invalid_request', `A tenant may have at most ${String(limits.modelKeysMax)} keys for model providers.`);
      const now = new Date().toISOString();
      const createdAt = before?.status === 'ok' ? before.value.createdAt : now;
      const sealed = this.#secrets.seal(toSecretName(provider), apiKey);
      const value: ModelKeyRecord = { version: 1, provider, sealed, createdAt, updatedAt: now };
      await this.#records.put(provider, value);
      return this.#view(provider, { status: 'ok', value });
    });
  }

  /** @throws AppError not_found */
  async remove(provider: string): Promise<void> {
    if (!(await this.#records.remove(provider))) throw new AppError('not_found', `There is no own key for ${provider}.`);
  }

  /** All keys, by provider; null: there is one, and it cannot be read. */
  async open(): Promise<ReadonlyMap<string, string | null>> {
    const opened = new Map<string, string | null>();
    for (const provider of await this.#records.names()) {
      const read = await this.#records.read(provider);
      if (read !== undefined) opened.set(provider, this.#open(provider, read) ?? null);
    }
    return opened;
  }

  async sweep(): Promise<void> {
    await this.#records.sweep();
  }

  #open(provider: string, read: Parsed<ModelKeyRecord>): string | undefined {
    if (read.status === 'broken') return undefined;
    try {
      return this.#secrets.open(toSecretName(provider), read.value.sealed);
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  #view(provider: string, read: Parsed<ModelKeyRecord>): ModelKeyView {
    const opened = this.#open(provider, read);
    const { createdAt, updatedAt } = read.status === 'ok' ? read.value : { createdAt: unknownTime, updatedAt: unknownTime };
    const hint = opened === undefined || opened.length < HINTED_MIN_CHARACTERS ? '' : opened.slice(-HINT_CHARACTERS);
    const problem = opened === undefined ? (read.status === 'broken' ? read.reason : unreadable) : null;
    return { provider, hint, createdAt, updatedAt, problem };
  }
}

const unknownTime = new Date(0).toISOString();
const unreadable = 'it cannot be read here: it was sealed for another tenant id or with another SECRETS_KEY; enter it again';

function toSecretName(provider: string): string {
  return `model-keys/${provider}`;
}
