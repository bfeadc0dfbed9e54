import OpenAI from 'openai';
import type { ModelLimits } from './limits.ts';
import type { HttpTransport } from './transport.ts';

/** The client needs a key; the header it would go into is taken out again. */
const NO_KEY = 'none';

export interface ClientOptions {
  readonly baseUrl: string;
  readonly apiKey: string | null;
  readonly transport: HttpTransport;
  readonly limits: ModelLimits;
}

/**
 * The library's client for one provider: it builds requests and reads refusals, and nothing is tried again behind our
 * back.
 */
export function openClient({ baseUrl, apiKey, transport, limits }: ClientOptions): OpenAI {
  return new OpenAI({
    apiKey: apiKey ?? NO_KEY,
    ...(apiKey === null ? { defaultHeaders: { Authorization: null } } : {}),
    baseURL: baseUrl,
    // Named, or the client takes them from the environment: another provider's account is none of this one's business.
    organization: null,
    project: null,
    adminAPIKey: null,
    fetch: transport.fetch,
    // Retries are ours: seen in the log, counted, and ended by the caller's signal.
    maxRetries: 0,
    timeout: limits.attemptMs,
    logLevel: 'off',
  });
}
