import { join } from 'node:path';
import { AppError, TenantSettings } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { replaceFile } from './atomic-file.ts';
import type { FolderSync } from './folder-sync.ts';
import { parseJson, readIfThere, type Parsed } from './json-file.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { StatCache } from './stat-cache.ts';

const settingsFile = 'tenant.json';
/** What was last in force, for processes that start while tenant.json is broken. */
const lastGoodFile = 'tenant.last-good.json';
/** Where there never was a good one: the plan that allows least. */
const leastSettings: TenantSettings = { plan: 'preview' };

/** A JSON merge patch (RFC 7396): null removes a setting, objects are merged, everything else is replaced. */
export type SettingsPatch = { readonly [Name in keyof TenantSettings]?: unknown };

export interface SettingsOptions {
  readonly accountId: string;
  /** The tenant's folder. */
  readonly root: string;
  readonly folders: FolderSync;
  readonly log: Log;
}

type ReadSettings = Parsed<TenantSettings>;

/** tenants/<id>/tenant.json. A bad file is reported, and the last good one stays in force. */
export class Settings {
  readonly #options: SettingsOptions;
  readonly #cache = new StatCache<ReadSettings>(1);
  readonly #writers = new KeyedMutex();
  #lastGood: TenantSettings | undefined;
  #problem: string | null = null;

  constructor(options: SettingsOptions) {
    this.#options = options;
  }

  /** What is wrong with tenant.json, as of the last `current()`; null when nothing is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** The settings in force. One system call when nothing has changed. */
  async current(): Promise<TenantSettings> {
    const path = join(this.#options.root, settingsFile);
    const read = await this.#cache.get(path, async () => parseJson(TenantSettings, (await readIfThere(path)) ?? ''));
    return read?.status === 'ok' ? this.#accept(read.value) : this.#fallBack(read?.reason ?? 'there is no tenant.json');
  }

  /** @throws AppError invalid_request, when the outcome would not be good settings */
  async update(patch: SettingsPatch): Promise<TenantSettings> {
    return this.#writers.run(settingsFile, async () => {
      const merged = TenantSettings.safeParse(mergePatch(await this.current(), patch));
      if (!merged.success) {
        const errors = merged.error.issues.map((issue) => ({ path: issue.path.map(String).join('.'), message: issue.message }));
        throw new AppError('invalid_request', 'The settings are not valid.', { errors });
      }
      await this.#write(settingsFile, merged.data);
      return this.current();
    });
  }

  async #accept(settings: TenantSettings): Promise<TenantSettings> {
    this.#problem = null;
    if (this.#lastGood === settings) return settings;
    this.#lastGood = settings;
    const kept = await readIfThere(join(this.#options.root, lastGoodFile));
    if (kept !== textOf(settings)) await this.#write(lastGoodFile, settings);
    return settings;
  }

  async #fallBack(reason: string): Promise<TenantSettings> {
    if (this.#problem !== reason) {
      this.#options.log.warn(
        { accountId: this.#options.accountId, reason },
        'tenant.json cannot be used, the last good settings stay in force',
      );
    }
    this.#problem = reason;
    this.#lastGood ??= await this.#readLastGood();
    return this.#lastGood;
  }

  async #readLastGood(): Promise<TenantSettings> {
    const kept = parseJson(TenantSettings, (await readIfThere(join(this.#options.root, lastGoodFile))) ?? '');
    return kept.status === 'ok' ? kept.value : leastSettings;
  }

  async #write(name: string, settings: TenantSettings): Promise<void> {
    await replaceFile({ folder: this.#options.root, name, content: textOf(settings), folders: this.#options.folders });
  }
}

export function textOf(settings: TenantSettings): string {
  return `${JSON.stringify(settings, undefined, 2)}\n`;
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
