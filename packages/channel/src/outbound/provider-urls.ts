import { withoutEnding } from '@concierge/contract';

/** Where providers are. The deployment's configuration and nothing of a tenant: who may name them could read every tenant's tokens. */
export interface ProviderUrls {
  /** META_GRAPH_URL, with the version. */
  readonly metaGraph: string;
  /** TELEGRAM_API_URL */
  readonly telegram: string;
  /** SLACK_API_URL */
  readonly slack: string;
}

export const providerUrls: ProviderUrls = {
  metaGraph: 'https://graph.facebook.com/v23.0',
  telegram: 'https://api.telegram.org',
  slack: 'https://slack.com/api',
};

/** `path` below a base that may end in a slash or not. */
export function below(base: string, path: string): string {
  return `${withoutEnding(base, '/')}/${path}`;
}
