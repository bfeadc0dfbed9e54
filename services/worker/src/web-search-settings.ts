import { z } from 'zod';

/** Spread into the worker's schema. */
export const webSearchEnvironment = {
  WEB_SEARCH_PROVIDER: z.enum(['brave', 'tavily', 'searxng']).optional(),
  WEB_SEARCH_URL: z.url({ protocol: /^https?$/u, error: 'must be an http:// or https:// address' }).optional(),
  WEB_SEARCH_KEY: z.string().optional(),
};

type Given = z.output<z.ZodObject<typeof webSearchEnvironment>>;

/** The variables that are still missing. */
export function missingForWebSearch({
  WEB_SEARCH_PROVIDER,
  WEB_SEARCH_URL,
  WEB_SEARCH_KEY,
}: Given): [name: keyof Given, message: string][] {
  switch (WEB_SEARCH_PROVIDER) {
    case undefined: {
      const isAsked = WEB_SEARCH_URL !== undefined || WEB_SEARCH_KEY !== undefined;
      return isAsked ? [['WEB_SEARCH_PROVIDER', 'must be brave, tavily or searxng when one of the others is set']] : [];
    }
    case 'searxng': {
      return WEB_SEARCH_URL === undefined ? [['WEB_SEARCH_URL', 'is required: SearXNG has no address of its own']] : [];
    }
    case 'brave':
    case 'tavily': {
      return WEB_SEARCH_KEY === undefined ? [['WEB_SEARCH_KEY', `is required for ${WEB_SEARCH_PROVIDER}`]] : [];
    }
  }
}

/** Undefined: the agents have no web search, and the tool answers that. `url` undefined: the provider's own. */
export function toWebSearchSettings({ WEB_SEARCH_PROVIDER: provider, WEB_SEARCH_URL: url, WEB_SEARCH_KEY: key }: Given) {
  return provider === undefined ? undefined : { provider, url, key };
}
