import type { ModelFacts } from '@concierge/contract';
import { ModelError, type Model, isContextOverflow, type ModelErrorKind, type ModelEvent, type ModelRequest } from '../model.ts';
import { findModel, toProviderName, type OwnKeys, type Providers, type UsableModel } from '../providers.ts';
import { defaultModelLimits, type ModelLimits, asModelError, mayRepeat, pause, redact, waitBefore } from './attempts.ts';
import { toCallFailure, type CallFailure } from './call-failure.ts';
import { ChatModel } from './chat-request.ts';
import { HttpTransport } from './transport.ts';

/** Which models failed lately, in any process: they are asked after the others of their line. */
export interface ModelHealth {
  /** Nothing has failed: no call needs to look. */
  readonly isAllWell: boolean;
  mayAsk(ref: string): Promise<boolean>;
  failed(ref: string, facts: { readonly isProviders: boolean; readonly retryAfterMs?: number | undefined }): void;
  answered(ref: string): void;
}

const alwaysWell: ModelHealth = {
  isAllWell: true,
  mayAsk: async () => Promise.resolve(true),
  failed: () => undefined,
  answered: () => undefined,
};

export interface ModelsOptions {
  readonly providers: Providers;
  /** Patience; what is not given is `defaultModelLimits`. */
  readonly limits?: Partial<ModelLimits> | undefined;
  /**
   * Called for every failed attempt and every model that could not be asked, as it happens: for the log and metrics.
   */
  readonly onFailedAttempt?: ((failure: FailedAttempt) => void) | undefined;
  /** Without it each call asks the models of its line in order. */
  readonly health?: ModelHealth | undefined;
}

const noKeys: OwnKeys = new Map();

/** A model in use: asked first, with its fallbacks behind it. */
export interface ProviderModel extends Model {
  /** `provider/model` that is asked first. */
  readonly ref: string;
  readonly facts: ModelFacts;
  /** The tenant's own keys pay for every call of it. */
  readonly ownKey: boolean;
}

/** All models of the providers file, over one set of kept-alive connections. */
export class Models {
  readonly #providers: Providers;
  readonly #limits: ModelLimits;
  readonly #onFailedAttempt: (failure: FailedAttempt) => void;
  readonly #health: ModelHealth;
  readonly #transport = new HttpTransport();
  readonly #models = new Map<string, ChatModel>();
  /** What `forRef` has answered, where every model of the line can be asked. */
  readonly #whole = new Map<string, ProviderModel>();

  constructor(options: ModelsOptions) {
    this.#providers = options.providers;
    this.#limits = { ...defaultModelLimits, ...options.limits };
    this.#onFailedAttempt = options.onFailedAttempt ?? (() => undefined);
    this.#health = options.health ?? alwaysWell;
  }

  /**
   * `ref` (the file's default when undefined), then the file's fallbacks. A ref whose provider is unknown or has no key
   * is reported and passed over. Throws `ModelError` (`rejected`) when none is left. With an own key for its provider,
   * fallbacks are those that the tenant has own keys for: the operator does not pay in their place.
   */
  forRef(ref: string = this.#providers.default, own: OwnKeys = noKeys): ProviderModel {
    return (own.size === 0 ? this.#whole.get(ref) : undefined) ?? this.#openLine(ref, own);
  }

  /** Ends all connections. Replies under way fail. */
  close(): void {
    this.#transport.close();
  }

  #openLine(ref: string, own: OwnKeys): ProviderModel {
    const ownKey = own.has(toProviderName(ref));
    const refs = [...new Set([ref, ...this.#providers.fallbacks])].filter((each) => !ownKey || own.has(toProviderName(each)));
    const line = refs.flatMap((each) => this.#listModels(each, own));
    const [first] = line;
    if (first === undefined) throw new ModelError('rejected', `no usable key for ${ref} nor for any fallback`, { model: ref, ownKey });
    const model = new FallbackModel(line, { limits: this.#limits, onFailedAttempt: this.#onFailedAttempt, health: this.#health });
    if (own.size === 0 && line.length === refs.length) this.#whole.set(ref, model);
    return model;
  }

  #listModels(ref: string, own: OwnKeys): ChatModel[] {
    const key = own.get(toProviderName(ref));
    const usable = key === null ? undefined : findModel(this.#providers, ref, key);
    if (usable === undefined) {
      this.#onFailedAttempt({
        model: ref,
        attempt: 0,
        kind: 'rejected',
        status: undefined,
        code: undefined,
        reason: key === null ? 'the own key cannot be read' : 'unknown provider, or no key for it',
        waitMs: null,
        ownKey: key !== undefined,
      });
      return [];
    }
    // Not kept: a key may be removed at any time.
    if (key !== undefined) return [this.#newModel(usable)];
    return [this.#models.get(ref) ?? this.#open(usable)];
  }

  #newModel(model: UsableModel): ChatModel {
    return new ChatModel(model, { transport: this.#transport, limits: this.#limits });
  }

  #open(model: UsableModel): ChatModel {
    const opened = this.#newModel(model);
    this.#models.set(model.ref, opened);
    return opened;
  }
}

export interface FailedAttempt {
  /** `provider/model`. */
  readonly model: string;
  /** From 1, per model; 0 when the model could not be asked at all. */
  readonly attempt: number;
  readonly kind: ModelErrorKind;
  readonly status: number | undefined;
  /** What the provider calls the failure, when it names one. */
  readonly code: string | undefined;
  /** For operators: may quote the provider, never a key. */
  readonly reason: string;
  /** Until the same model is asked again; null: it is not. */
  readonly waitMs: number | null;
  /** With the tenant's own key: its owner's business, and no other's. */
  readonly ownKey: boolean;
}

interface FallbackModelOptions {
  readonly limits: ModelLimits;
  readonly onFailedAttempt: (failure: FailedAttempt) => void;
  readonly health: ModelHealth;
}

type LastFailure = () => CallFailure | undefined;

interface Attempt {
  readonly model: ChatModel;
  readonly number: number;
  /** The last model of the line: no other is left. */
  readonly last: boolean;
}

/** How often a silent model is asked where there is no other. */
const SILENT_ATTEMPTS = 2;

/** Asks the models of a line, each a few times, until one has answered to the end. */
class FallbackModel implements Model {
  readonly ref: string;
  readonly facts: ModelFacts;
  readonly ownKey: boolean;
  readonly isContextOverflow = isContextOverflow;
  readonly #line: readonly ChatModel[];
  readonly #options: FallbackModelOptions;

  /** `line` must not be empty. */
  constructor(line: readonly ChatModel[], options: FallbackModelOptions) {
    const [first] = line;
    if (first === undefined) throw new RangeError('a line of models needs a first one');
    this.ref = first.facts.ref;
    this.facts = first.facts.facts;
    this.ownKey = line.every((model) => model.ownKey);
    this.#line = line;
    this.#options = options;
  }

  async *stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent, void, undefined> {
    /** The model whose text was emitted without an end. */
    let spokenBy: ChatModel | undefined;
    let failure: CallFailure | undefined;
    let failedAttempts = 0;
    const { health } = this.#options;
    const line = health.isAllWell ? this.#line : await orderLine(this.#line, health);
    for (const attempt of this.#attempts(line, () => failure)) {
      signal.throwIfAborted();
      let voided = spokenBy;
      try {
        for await (const event of attempt.model.attempt(request, signal)) {
          // A reset is emitted only when other text follows: a cut answer beats none.
          if (voided !== undefined) yield { type: 'reset', reason: voided === attempt.model ? 'restarted' : 'fallback_model' };
          voided = undefined;
          spokenBy = attempt.model;
          if (event.type === 'end') this.#noteAnswer(attempt.model);
          yield withFailures(event, failedAttempts);
        }
        return;
      } catch (error) {
        signal.throwIfAborted();
        failure = toCallFailure(error);
        failedAttempts += 1;
        const waitMs = this.#report(attempt, failure);
        const isHopeless = failure.remedy === 'none' || (waitMs === null && attempt.last);
        if (isHopeless) throw asModelError(failure, { ref: attempt.model.facts.ref, ...attempt.model.facts.provider });
        if (waitMs !== null) await pause(waitMs, signal);
      }
    }
  }

  #noteAnswer({ ownKey, facts }: ChatModel): void {
    if (!ownKey) this.#options.health.answered(facts.ref);
  }

  /** Every possible attempt, in order; a model whose last failure cannot be helped by repetition is left. */
  *#attempts(line: readonly ChatModel[], lastFailure: LastFailure): Generator<Attempt, void, undefined> {
    for (const [index, model] of line.entries()) {
      for (let number = 1; number <= this.#options.limits.attempts; number += 1) {
        const attempt = { model, number, last: index === line.length - 1 };
        yield attempt;
        const failure = lastFailure();
        if (failure !== undefined && !this.#isRepeated(attempt, failure)) break;
      }
    }
  }

  #isRepeated({ number, last }: Attempt, failure: CallFailure): boolean {
    const { limits } = this.#options;
    if (failure.remedy === 'elsewhere') return last && number < Math.min(SILENT_ATTEMPTS, limits.attempts);
    return number < limits.attempts && mayRepeat(failure, limits);
  }

  /** The wait before the same model is asked again; null when it is not. */
  #report(attempt: Attempt, failure: CallFailure): number | null {
    const { model, number } = attempt;
    const { limits } = this.#options;
    const waitMs = this.#isRepeated(attempt, failure) ? waitBefore(number, { failure, limits }) : null;
    const reason = redact(failure.message, model.facts.provider.apiKey);
    const { kind, status } = failure;
    const code = failure.code && redact(failure.code, model.facts.provider.apiKey);
    this.#options.onFailedAttempt({ model: model.facts.ref, attempt: number, kind, status, code, reason, waitMs, ownKey: model.ownKey });
    // What befalls one tenant's key, or the long call of one turn, says nothing of others'.
    const isOthers = failure.remedy !== 'none' && !failure.ofReply && !model.ownKey;
    if (waitMs === null && isOthers) this.#options.health.failed(model.facts.ref, toSickness(failure));
    return waitMs;
  }
}

function withFailures(event: ModelEvent, failedAttempts: number): ModelEvent {
  return event.type === 'end' && failedAttempts > 0 ? { ...event, failedAttempts } : event;
}

/** Those that failed lately go last: where all have, they are asked as ever. */
async function orderLine(line: readonly ChatModel[], health: ModelHealth): Promise<readonly ChatModel[]> {
  if (line.length === 1) return line;
  const [well, cooling]: [ChatModel[], ChatModel[]] = [[], []];
  // One that may be asked takes the place of all after it: no other is tried out for this call.
  for (const model of line) {
    const isFirst = well.length > 0 || model.ownKey || (await health.mayAsk(model.facts.ref));
    (isFirst ? well : cooling).push(model);
  }
  return [...well, ...cooling];
}

/** A refused key, or credit that is used up, holds for every model of the provider. */
const ofProvider: ReadonlySet<number | undefined> = new Set([401, 402, 403]);

function toSickness({ status, code, retryAfterMs }: CallFailure): Parameters<ModelHealth['failed']>[1] {
  return { isProviders: ofProvider.has(status) || code === 'insufficient_quota' || code === 'billing_not_active', retryAfterMs };
}
