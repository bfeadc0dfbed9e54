import type { ModelFacts } from '@concierge/contract';
import { ModelError } from '../model-error.ts';
import type { Model } from '../model.ts';
import { findModel, type Providers, type UsableModel } from '../providers.ts';
import { ChatModel } from './chat-model.ts';
import { FallbackModel, type FailedAttempt } from './fallback-model.ts';
import { defaultModelLimits, type ModelLimits } from './limits.ts';
import { HttpTransport } from './transport.ts';

export interface ModelsOptions {
  readonly providers: Providers;
  /** Patience; what is not given is `defaultModelLimits`. */
  readonly limits?: Partial<ModelLimits> | undefined;
  /**
   * Called for every failed attempt and every model that could not be asked, as it happens: for the log and metrics.
   */
  readonly onFailedAttempt?: ((failure: FailedAttempt) => void) | undefined;
}

/** A model in use: asked first, with its fallbacks behind it. */
export interface ProviderModel extends Model {
  /** `provider/model` that is asked first. */
  readonly ref: string;
  readonly facts: ModelFacts;
}

/** All models of the providers file, over one set of kept-alive connections. */
export class Models {
  readonly #providers: Providers;
  readonly #limits: ModelLimits;
  readonly #onFailedAttempt: (failure: FailedAttempt) => void;
  readonly #transport = new HttpTransport();
  readonly #models = new Map<string, ChatModel>();

  constructor(options: ModelsOptions) {
    this.#providers = options.providers;
    this.#limits = { ...defaultModelLimits, ...options.limits };
    this.#onFailedAttempt = options.onFailedAttempt ?? (() => undefined);
  }

  /**
   * `ref` (the file's default when undefined), then the file's fallbacks. A ref whose provider is unknown or has no key
   * is reported and passed over. Throws `ModelError` (`rejected`) when none is left.
   */
  forRef(ref: string = this.#providers.default): ProviderModel {
    const line = [...new Set([ref, ...this.#providers.fallbacks])].flatMap((each) => this.#modelOf(each));
    const [first] = line;
    if (first === undefined) throw new ModelError('rejected', `no usable key for ${ref} nor for any fallback`, { model: ref });
    return new FallbackModel(line, { limits: this.#limits, onFailedAttempt: this.#onFailedAttempt });
  }

  /** Ends all connections. Replies under way fail. */
  close(): void {
    this.#transport.close();
  }

  #modelOf(ref: string): ChatModel[] {
    const usable = findModel(this.#providers, ref);
    if (usable === undefined) {
      this.#onFailedAttempt({
        model: ref,
        attempt: 0,
        kind: 'rejected',
        status: undefined,
        code: undefined,
        reason: 'unknown provider, or no key for it',
        waitMs: null,
      });
      return [];
    }
    return [this.#models.get(ref) ?? this.#open(usable)];
  }

  #open(model: UsableModel): ChatModel {
    const opened = new ChatModel(model, { transport: this.#transport, limits: this.#limits });
    this.#models.set(model.ref, opened);
    return opened;
  }
}
