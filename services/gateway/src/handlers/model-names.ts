import { AppError } from '@concierge/contract';
import { findModel, loadProviders } from '@concierge/model';
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
    // Keys are the workers' affair, and their environment may be another.
    const providers = await loadProviders(this.#file, () => 'a key').catch((error: unknown) => {
      this.#log.warn({ err: error }, 'the providers file cannot be read: models of settings are not checked');
    });
    if (providers === undefined) return;
    const names = [...providers.usable.keys()].join(', ');
    const errors = named
      .filter(({ ref }) => findModel(providers, ref) === undefined)
      .map(({ path, ref }) => ({ path, message: `${ref} is a model of no provider here; there are: ${names}` }));
    if (errors.length > 0) throw new AppError('invalid_request', undefined, { errors });
  }
}
