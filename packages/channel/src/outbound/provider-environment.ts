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

export type ProviderSettings = ReturnType<typeof toProviderSettings>;

export function toProviderSettings(given: z.output<z.ZodObject<typeof providerEnvironment>>) {
  const { META_GRAPH_URL: metaGraph, TELEGRAM_API_URL: telegram, SLACK_API_URL: slack, PUBLIC_URL: publicUrl } = given;
  const urls: ProviderUrls = { metaGraph, telegram, slack };
  /** `publicUrl`: where providers reach the gateway, without a slash at its end; undefined: not known. */
  return { providerUrls: urls, publicUrl };
}
