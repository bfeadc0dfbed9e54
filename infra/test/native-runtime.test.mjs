import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';

class OwnError extends Error {}

describe('an error that Node makes, in a test', () => {
  it('is an error, as it is in production', async () => {
    const missing = await readFile('/there/is/no/such/file').catch((error) => error);
    expect(missing instanceof Error).toBe(true);
    expect(AbortSignal.abort().reason instanceof Error).toBe(true);
    expect(new OwnError('own') instanceof Error).toBe(true);
  });

  it('is none of a class of its own', async () => {
    const missing = await readFile('/there/is/no/such/file').catch((error) => error);
    expect(missing instanceof OwnError).toBe(false);
    expect({ message: 'no error' } instanceof Error).toBe(false);
  });
});
