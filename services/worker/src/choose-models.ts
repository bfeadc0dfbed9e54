import { demoProviders, hasUsableKey, loadProviders, type EnvironmentLookup, type Providers } from '@concierge/model';
import { startDemoModel } from '@concierge/model/demo';
import type { Log, Stoppable } from '@concierge/runtime';

export interface ChosenProviders {
  readonly providers: Providers;
  /** The demonstration's server, when that is what answers. */
  readonly demo: Stoppable | undefined;
}

/**
 * The providers file's models; when it names no key that can be used, the built-in demonstration, served over HTTP like any other, so
 * that the same client code runs. Which of them it is stands in the log. Throws ProvidersFileError for a file that cannot be read.
 */
export async function chooseProviders(file: string, lookup: EnvironmentLookup, log: Log): Promise<ChosenProviders> {
  const providers = await loadProviders(file, lookup);
  for (const reason of providers?.unusable ?? []) log.warn({ reason }, 'a provider cannot be used');
  if (providers !== undefined && hasUsableKey(providers)) {
    log.info({ model: providers.default, fallbacks: providers.fallbacks }, 'models come from the providers file');
    return { providers, demo: undefined };
  }
  const demo = await startDemoModel({ port: 0, host: '127.0.0.1' });
  log.warn({ file }, 'no usable provider key: replies come from the built-in demo model');
  return { providers: demoProviders(demo.url), demo: { name: 'demo model', stop: async () => demo.close() } };
}
