import { withoutEnding } from '@concierge/contract';
import { z } from 'zod';
import { providerUrls, type ProviderUrls } from './provider-urls.ts';

/** Paths are put below it as they are, so nothing may follow. */
const base = z
  .url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address', abort: true })
  .refine((address) => isPlain(address), 'must be an address without credentials, query and fragment')
  .transform((address) => withoutEnding(address, '/'));

function isPlain(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && `${url.username}${url.password}${url.search}${url.hash}` === '';
}

/** Where providers are, and where they reach us; spread into the schema of each service that speaks to them. */
export const providerEnvironment = {
  META_GRAPH_URL: base.default(providerUrls.metaGraph),
  TELEGRAM_API_URL: base.default(providerUrls.telegram),
  SLACK_API_URL: base.default(providerUrls.slack),
  PUBLIC_URL: base.optional(),
};

const ProviderEnvironment = z.object(providerEnvironment);

export interface ProviderSettings {
  readonly providerUrls: ProviderUrls;
  /** Where providers reach the gateway, without a slash at its end; undefined: nobody has said. */
  readonly publicUrl: string | undefined;
}

export function toProviderSettings(given: z.output<typeof ProviderEnvironment>): ProviderSettings {
  const { META_GRAPH_URL: metaGraph, TELEGRAM_API_URL: telegram, SLACK_API_URL: slack } = given;
  return { providerUrls: { metaGraph, telegram, slack }, publicUrl: given.PUBLIC_URL };
}
