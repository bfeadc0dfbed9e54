import { describe, expect, it } from '@jest/globals';
import { isRefusedAsTooLong } from './call-failure.ts';

describe('isRefusedAsTooLong', () => {
  it.each([
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 132463 tokens (1463 of text input, 131000 in the output).",
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    'Input tokens exceed the configured limit of 272000 tokens.',
    'prompt is too long: 213462 tokens > 200000 maximum',
    'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).',
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    'Please reduce the length of the messages or completion.',
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    'Input is too long for requested model.',
    'The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
    'the request exceeds the available context size, try increasing it',
    'Invalid request: Your request exceeded model token limit: 131072',
  ])('knows: %s', (message) => {
    expect(isRefusedAsTooLong({ status: 400, code: null, message })).toBe(true);
  });

  it('goes by the code where there is one', () => {
    expect(isRefusedAsTooLong({ status: 400, code: 'context_length_exceeded', message: 'no' })).toBe(true);
    expect(isRefusedAsTooLong({ status: 413, code: null, message: '' })).toBe(true);
  });

  it.each([
    [400, "Invalid value for 'temperature'"],
    [400, 'Unsupported parameter: max_tokens'],
    [429, 'Rate limit reached: please reduce the length of the messages'],
    [500, 'maximum context length'],
  ])('is not fooled by %d %s', (status, message) => {
    expect(isRefusedAsTooLong({ status, code: null, message })).toBe(false);
  });
});
