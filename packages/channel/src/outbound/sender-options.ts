import type { ProviderUrls } from './provider-urls.ts';

export interface SenderOptions {
  readonly urls: ProviderUrls;
  /** How long an answer to a send is waited for; after that it is unknown whether it was sent. */
  readonly timeoutMs?: number;
  /** The address for the provider's callbacks about this binding. Absent without PUBLIC_URL. */
  readonly webhookUrl?: string | undefined;
}
