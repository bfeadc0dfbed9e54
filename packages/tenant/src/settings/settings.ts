import { AppError, invalidFields, TenantSettings, toStoredSchema } from '@concierge/contract';
import { StatCache, type FolderSync } from '@concierge/files';
import { background, type Log } from '@concierge/runtime';
import { SettingsFiles, type SettingsLook } from './settings-files.ts';

/** A JSON merge patch (RFC 7396): null removes a setting, objects are merged, everything else is replaced. */
export type SettingsPatch = { readonly [Name in keyof TenantSettings]?: unknown };

export interface SettingsOptions {
  readonly tenantId: string;
  /** The tenant's folder. */
  readonly root: string;
  readonly folders: FolderSync;
  readonly log: Log;
}

/** tenants/<id>/tenant.json. A bad file is reported, and the last good one stays in force. */
export class Settings {
  readonly #files: SettingsFiles;
  readonly #log: Log;
  readonly #tenantId: string;
  readonly #cache = new StatCache<SettingsLook>(1);
  #isTidying = false;
  /** Could not be put in order, which is not tried again with each request. */
  #leftAsItWas: SettingsLook | undefined;
  #problem: string | null = null;

  constructor({ tenantId, root, folders, log }: SettingsOptions) {
    this.#files = new SettingsFiles(root, folders);
    this.#tenantId = tenantId;
    this.#log = log;
  }

  /** What is wrong with tenant.json, as of the last `current()`; null when nothing is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The settings in force. One system call when nothing has changed. @throws AppError not_found */
  async current(): Promise<TenantSettings> {
    const look = (await this.#cache.get(this.#files.path, async () => this.#files.look())) ?? (await this.#files.look());
    const { settings, problem } = look.isInOrder ? look : await this.#tidied(look);
    this.#report(problem);
    return settings;
  }

  /**
   * @throws AppError invalid_request, when the outcome would not be good settings; conflict, when tenant.json cannot be
   * written to
   */
  async update(patch: SettingsPatch): Promise<TenantSettings> {
    await this.#files.write((settings) => {
      const merged = toStoredSchema(TenantSettings).safeParse(mergePatch(settings, patch));
      if (merged.success) return merged.data;
      throw new AppError('invalid_request', 'The settings are not valid.', { errors: invalidFields(merged.error) });
    });
    this.#cache.forget(this.#files.path);
    return this.current();
  }

  /** Clears away what updates that died in the middle left. */
  async sweep(): Promise<void> {
    await this.#files.sweep();
  }

  /** What is in force is known: that the files cannot be put in order is no reason to refuse it. */
  async #tidied(look: SettingsLook): Promise<SettingsLook> {
    if (look === this.#leftAsItWas) return look;
    if (look.isChanging) {
      this.#cache.forget(this.#files.path);
      // Most likely another process is changing it, and this reader need not wait for that.
      background(this.#tidyOnce(), this.#log);
      return look;
    }
    try {
      const tidied = await this.#files.tidy();
      this.#cache.forget(this.#files.path);
      return tidied;
    } catch (error) {
      // The tenant is being removed: what there is by default is not in force for it, least of all that it may run.
      if (error instanceof AppError && error.code === 'not_found') throw error;
      this.#log.error({ tenantId: this.#tenantId, err: error }, 'the settings in force could not be kept');
      this.#leftAsItWas = look;
      return look;
    }
  }

  async #tidyOnce(): Promise<void> {
    if (this.#isTidying) return;
    this.#isTidying = true;
    try {
      await this.#files.tidy();
    } finally {
      this.#isTidying = false;
    }
  }

  #report(problem: string | null): void {
    if (problem !== null && problem !== this.#problem) {
      const facts = { tenantId: this.#tenantId, reason: problem };
      this.#log.warn(facts, 'tenant.json cannot be used, the last good settings stay in force');
    }
    this.#problem = problem;
  }
}

function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Record<string, unknown> = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (value !== undefined) merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
