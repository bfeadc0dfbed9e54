import { demoProviders, hasUsableKey, loadProviders, type EnvironmentLookup, type Providers } from '@concierge/model';
import { startDemoModel } from '@concierge/model/demo';
import { ConfigError, type Log } from '@concierge/runtime';

export interface ChosenProviders {
  readonly providers: Providers;
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
 * served over HTTP like any other, so that the same client code runs. Which of them it is stands in the log. @throws
 * ProvidersFileError for a file that cannot be read, ConfigError where nothing can answer
 */
export async function chooseProviders(
  { providersFile: file, mayUseDemoModel, environment }: ModelSources,
  log: Log,
): Promise<ChosenProviders> {
  const providers = await loadProviders(file, environment);
  for (const reason of providers?.unusable ?? []) log.warn({ reason }, 'a provider cannot be used');
  if (providers !== undefined && hasUsableKey(providers)) {
    log.info({ model: providers.default, fallbacks: providers.fallbacks }, 'models come from the providers file');
    return { providers, demo: undefined };
  }
  if (!mayUseDemoModel) throw new ConfigError([nothingAnswers(file, providers)]);
  const demo = await startDemoModel({ port: 0, host: '127.0.0.1' });
  log.warn({ file }, 'no usable provider key: replies come from the built-in demo model');
  return { providers: demoProviders(demo.url), demo: { [Symbol.asyncDispose]: async () => demo.close() } };
}

/** One line: what is missing, and what to do. */
function nothingAnswers(file: string, providers: Providers | undefined): string {
  const missing =
    providers === undefined ? 'does not exist' : `names no usable key for ${[providers.default, ...providers.fallbacks].join(', ')}`;
  const why = providers === undefined || providers.unusable.length === 0 ? '' : ` (${providers.unusable.join('; ')})`;
  return `PROVIDERS_FILE: ${file} ${missing}${why}; with DEMO_MODEL=1 the built-in demo model answers in production, too`;
}
