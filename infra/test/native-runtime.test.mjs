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

describe('a module that a test file imports', () => {
  const [, mark] = /\?(?<mark>[0-9a-f]{8})$/u.exec(import.meta.url) ?? [];

  it('is of this file alone where it lies beside tests, and of the whole process where it is what they test', () => {
    expect(mark).toBeDefined();
    expect(import.meta.resolve('./outcome.mjs')).toMatch(new RegExp(`/infra/test/outcome\\.mjs\\?${mark}$`, 'u'));
    expect(import.meta.resolve('@concierge/testing')).toMatch(/\/packages\/testing\/src\/index\.ts$/u);
  });

  it('takes the functions of the file that runs from @jest/globals', async () => {
    const globals = await import('@jest/globals');
    expect(globals.it).toBe(it);
    expect(import.meta.resolve('@jest/globals')).toMatch(/\/infra\/test\/jest-globals\.mjs$/u);
  });
});

it.each(['assertions', 'hasAssertions'])('expect.%s, of which Jest would learn nothing, is refused', (name) => {
  const ask = Reflect.get(expect, name);
  expect(ask).toThrow('docs/decisions/0053');
});
