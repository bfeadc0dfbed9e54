import { readFile } from 'node:fs/promises';
import { AppError, ProvidersFile } from '@concierge/contract';
import type { Log } from '@concierge/runtime';

/** A model as a setting names it, and which setting that is. */
export interface NamedModel {
  readonly path: string;
  readonly ref: string;
}

/**
 * Which models there are, as far as the providers file says: a worker would answer with the default model in place of one that no provider has. A provider
 * may have more models than the file lists, so what counts is that there is one of that name.
 */
export class ModelNames {
  readonly #file: string;
  readonly #log: Log;

  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
  }

  /** @throws AppError `invalid_request`, naming each */
  async refuseUnknown(named: readonly NamedModel[]): Promise<void> {
    if (named.length === 0) return;
    const providers = await this.#providers();
    if (providers === undefined) return;
    const errors = named
      .filter(({ ref }) => !providers.has(ref.slice(0, ref.indexOf('/'))))
      .map(({ path, ref }) => ({ path, message: `${ref} is a model of no provider here; there are: ${[...providers].join(', ')}` }));
    if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
  }

  /** Their names. Whether there is a key for each the workers know, whose environment may be another. */
  async #providers(): Promise<ReadonlySet<string> | undefined> {
    try {
      const { providers } = ProvidersFile.parse(JSON.parse(await readFile(this.#file, 'utf8')));
      return new Set(Object.keys(providers));
    } catch {
      // The parser's message may quote a key. That the file cannot be used the workers say.
      this.#log.debug({ file: this.#file }, 'there is no providers file that can be read: models of settings are not checked');
      return undefined;
    }
  }
}
