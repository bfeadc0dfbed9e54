import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { providerEnvironment, toProviderSettings, type ProviderSettings, providerUrls } from './provider-environment.ts';

const Environment = z.object(providerEnvironment);
const read = (env: NodeJS.ProcessEnv): ProviderSettings => toProviderSettings(Environment.parse(env));

describe('where providers are', () => {
  it('is the provider’s public one, unless the deployment sets another', () => {
    expect(read({})).toEqual({ providerUrls, publicUrl: undefined });
    const env = {
      META_GRAPH_URL: 'https://graph.example.com/v26.0',
      TELEGRAM_API_URL: 'http://127.0.0.1:8081/',
      SLACK_API_URL: 'https://slack.example.com/api//',
      TWILIO_API_URL: 'https://twilio.example.com/',
    };
    expect(read(env).providerUrls).toEqual({
      metaGraph: 'https://graph.example.com/v26.0',
      telegram: 'http://127.0.0.1:8081',
      slack: 'https://slack.example.com/api',
      twilio: 'https://twilio.example.com',
    });
  });

  it('has no version added to it', () => {
    expect(read({ META_GRAPH_URL: 'https://graph.example.com' }).providerUrls.metaGraph).toBe('https://graph.example.com');
  });

  it('and where they reach us may have a path, and ends without a slash', () => {
    expect(read({ PUBLIC_URL: 'https://example.com/concierge/' }).publicUrl).toBe('https://example.com/concierge');
  });

  it.each([
    'chat.example.com',
    'ftp://example.com',
    'https://user:pass@example.com',
    'https://example.com/?a=b',
    'https://example.com/#a',
    '/path',
  ])('is not %s', (address) => {
    for (const name of Object.keys(providerEnvironment)) {
      const { error } = Environment.safeParse({ [name]: address });
      expect(error?.issues.map(({ path }) => path)).toEqual([[name]]);
    }
  });
});
