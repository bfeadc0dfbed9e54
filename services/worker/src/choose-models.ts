import { demoProviders, hasUsableKey, loadProviders, ProvidersFileError, type EnvironmentLookup, type Providers } from '@concierge/model';
import type { Log } from '@concierge/runtime';
import { ConfigError } from '@concierge/runtime/config';

export interface ChosenProviders {
  readonly providers: Providers;
  /** One line for each provider of the file that cannot be used. */
  readonly unusable: readonly string[];
  /** The demonstration's server, when that is what answers. */
  readonly demo: AsyncDisposable | undefined;
}

export interface ModelSources {
  readonly providersFile: string;
  /** Customers of a production service must not be answered by a demonstration by mistake. */
  readonly mayUseDemoModel: boolean;
  environment: EnvironmentLookup;
}

/**
 * The providers file's models; when it names no key that can be used, the built-in demonstration where that is allowed,
 * served over HTTP like any other, so that the same client code runs. Which of them it is stands in the log.
 * @throws ConfigError for a file that cannot be used, and where nothing can answer
 */
export async function chooseProviders(sources: ModelSources, log: Log): Promise<ChosenProviders> {
  const found = await findProviders(sources);
  for (const reason of found.unusable) log.warn({ reason }, 'a provider cannot be used');
  if (found.providers !== undefined) {
    const { default: model, fallbacks } = found.providers;
    log.info({ model, fallbacks }, 'models come from the providers file');
    return { providers: found.providers, unusable: found.unusable, demo: undefined };
  }
  // Most workers never need it.
  const { startDemoModel } = await import('@concierge/model/demo');
  const demo = await startDemoModel({ port: 0, host: '127.0.0.1' });
  log.warn({ file: sources.providersFile }, 'no usable provider key: replies come from the built-in demo model');
  return { providers: demoProviders(demo.url), unusable: found.unusable, demo: { [Symbol.asyncDispose]: async () => demo.close() } };
}

export interface FoundProviders {
  /** Undefined: none has a usable key, and the demo model may answer. */
  readonly providers: Providers | undefined;
  /** One line for each provider that cannot be used. */
  readonly unusable: readonly string[];
}

/** What `chooseProviders` decides by. @throws ConfigError as it does */
export async function findProviders({ providersFile: file, mayUseDemoModel, environment }: ModelSources): Promise<FoundProviders> {
  const providers = await loadProviders(file, environment).catch((error: unknown) => {
    if (!(error instanceof ProvidersFileError)) throw error;
    throw new ConfigError(error.problems.map((problem) => `PROVIDERS_FILE: ${file}: ${problem}`));
  });
  const unusable = providers?.unusable ?? [];
  if (hasUsableKey(providers)) return { providers, unusable };
  if (!mayUseDemoModel) throw new ConfigError([nothingAnswers(file, providers)]);
  return { providers: undefined, unusable };
}

/** One line: what is missing, and what to do. */
function nothingAnswers(file: string, providers: Providers | undefined): string {
  const missing =
    providers === undefined ? 'does not exist' : `names no usable key for ${[providers.default, ...providers.fallbacks].join(', ')}`;
  const why = providers === undefined || providers.unusable.length === 0 ? '' : ` (${providers.unusable.join('; ')})`;
  return `PROVIDERS_FILE: ${file} ${missing}${why}; with DEMO_MODEL=1 the built-in demo model answers in production, too`;
}
