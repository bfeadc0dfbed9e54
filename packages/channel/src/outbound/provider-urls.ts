import { channelDefinitions, withoutEnding } from '@concierge/contract';

type Definitions = typeof channelDefinitions;
export type ProviderApi = Definitions[keyof Definitions]['api'];

/**
 * Base addresses of the providers. Only the deployment sets them: a tenant that could name them could read every
 * tenant's tokens.
 */
export type ProviderUrls = { readonly [Api in ProviderApi as Api['key']]: string };

/** Each of them once: two channels may have one provider. */
export const providerApis: readonly ProviderApi[] = [
  ...new Map(Object.values(channelDefinitions).map(({ api }): [string, ProviderApi] => [api.key, api])).values(),
];

export const providerUrls: ProviderUrls = toProviderUrls(({ url }) => url);

export function toProviderUrls(urlOf: (api: ProviderApi) => string): ProviderUrls {
  // eslint-disable-next-line typescript/no-unsafe-type-assertion -- every key of the table, which Object.fromEntries forgets
  return Object.fromEntries(providerApis.map((api) => [api.key, urlOf(api)])) as ProviderUrls;
}

/** `path` below a base that may end in a slash or not. */
export function below(base: string, path: string): string {
  return `${withoutEnding(base, '/')}/${path}`;
}
