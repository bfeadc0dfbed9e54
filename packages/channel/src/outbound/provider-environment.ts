import { withoutEnding, channelDefinitions } from '@concierge/contract';
import { z } from 'zod';

type Definitions = typeof channelDefinitions;
type ProviderApi = Definitions[keyof Definitions]['api'];

/**
 * Base addresses of the providers. Only the deployment sets them: a tenant that could name them could read every
 * tenant's tokens.
 */
export type ProviderUrls = { readonly [Api in ProviderApi as Api['key']]: string };

/** Each of them once: two channels may have one provider. */
const providerApis: readonly ProviderApi[] = [
  ...new Map(Object.values(channelDefinitions).map(({ api }): [string, ProviderApi] => [api.key, api])).values(),
];

export const providerUrls: ProviderUrls = toProviderUrls(({ url }) => url);

function toProviderUrls(pickUrl: (api: ProviderApi) => string): ProviderUrls {
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- every key of the table, which Object.fromEntries forgets
  return Object.fromEntries(providerApis.map((api) => [api.key, pickUrl(api)])) as ProviderUrls;
}

/** Paths are put below it as they are, so nothing may follow. */
const base = z
  .url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address', abort: true })
  .refine((address) => isPlain(address), 'must be an address without credentials, query and fragment')
  .transform((address) => withoutEnding(address, '/'));

function isPlain(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && `${url.username}${url.password}${url.search}${url.hash}` === '';
}

type ApiVariables = { readonly [Api in ProviderApi as Api['variable']]: z.ZodDefault<typeof base> };

// eslint-disable-next-line typescript/no-unsafe-type-assertion -- every variable of the table, which Object.fromEntries forgets
const apiVariables = Object.fromEntries(providerApis.map(({ variable, url }) => [variable, base.default(url)])) as ApiVariables;

/** The addresses of providers and of our webhooks; spread into the schema of each service that calls them. */
export const providerEnvironment = { ...apiVariables, PUBLIC_URL: base.optional() };

export interface ProviderSettings {
  readonly providerUrls: ProviderUrls;
  /** Where providers reach the gateway, without a slash at its end; undefined: it is not configured. */
  readonly publicUrl: string | undefined;
}

export function toProviderSettings(given: z.output<z.ZodObject<typeof providerEnvironment>>): ProviderSettings {
  return { providerUrls: toProviderUrls(({ variable }) => given[variable]), publicUrl: given.PUBLIC_URL };
}

/** `path` below a base that may end in a slash or not. */
export function below(base: string, path: string): string {
  return `${withoutEnding(base, '/')}/${path}`;
}
