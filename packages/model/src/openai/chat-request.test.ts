import { describe, expect, it } from '@jest/globals';
import { ProvidersFile } from '@concierge/contract';
import type { ModelRequest } from '../model.ts';
import { findModel, resolveProviders } from '../providers.ts';
import { chatRequest } from './chat-request.ts';

function bodyFor(
  baseUrl: string,
  { facts = { maxOutputTokens: 1000 }, name = 'm' }: { facts?: Record<string, unknown>; name?: string } = {},
) {
  const file = ProvidersFile.parse({ default: 'p/m', providers: { p: { baseUrl, models: { m: facts } } } });
  const model = findModel(
    resolveProviders(file, () => undefined),
    `p/${name}`,
  );
  if (model === undefined) throw new Error('no model');
  return chatRequest(model, request);
}

const image = { type: 'image', mediaType: 'image/png', base64: 'AA==' } as const;
const request: ModelRequest = { system: '', messages: [{ role: 'user', content: [image] }], tools: [], conversationId: 'conversation-1' };

describe('chatRequest', () => {
  it('asks OpenAI for its own fields', () => {
    const body = bodyFor('https://api.openai.com/v1');
    expect(body).toMatchObject({
      max_completion_tokens: 1000,
      prompt_cache_key: 'conversation-1',
      stream_options: { include_usage: true },
    });
    expect(body).not.toHaveProperty('max_tokens');
  });

  it('asks compatible servers for nothing they may not know', () => {
    const body = bodyFor('https://openrouter.ai/api/v1');
    expect(body).toMatchObject({ max_tokens: 1000, stream_options: { include_usage: true } });
    expect(body).not.toHaveProperty('prompt_cache_key');
    expect(body).not.toHaveProperty('max_completion_tokens');
    expect(body).not.toHaveProperty('tools');
  });

  it('spares Mistral the stream options it refuses', () => {
    expect(bodyFor('https://api.mistral.ai/v1')).not.toHaveProperty('stream_options');
  });

  it('sets no output limit for a model without a description', () => {
    expect(bodyFor('https://api.openai.com/v1', { name: 'new' })).not.toHaveProperty('max_completion_tokens');
  });

  it('leaves out an empty system prompt', () => {
    expect(bodyFor('https://x.test/v1').messages).toHaveLength(1);
  });

  it('mentions an image to a model that cannot see', () => {
    expect(bodyFor('https://x.test/v1', { facts: { images: false } }).messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: expect.stringContaining('cannot see images') }] },
    ]);
  });

  it('gives the same bytes for the same conversation', () => {
    expect(JSON.stringify(bodyFor('https://x.test/v1'))).toBe(JSON.stringify(bodyFor('https://x.test/v1')));
  });
});
