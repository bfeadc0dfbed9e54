import { expect, it } from '@jest/globals';
import { ServiceStack, startPart } from './lifecycle.ts';

it('what a service has open is closed in the reverse order, also behind a part that fails', async () => {
  const stack = new ServiceStack();
  const seen: string[] = [];
  for (const name of ['first', 'second', 'third']) {
    const stop = async (): Promise<void> => {
      seen.push(`${name} stops`);
      if (name === 'second') throw new Error('second fails');
      await Promise.resolve();
    };
    startPart(stack, { start: () => void seen.push(`${name} starts`), stop });
  }
  await expect(stack.stop(0)).rejects.toThrow('second fails');
  expect(seen).toEqual(['first starts', 'second starts', 'third starts', 'third stops', 'second stops', 'first stops']);
});

it('a part that drains has what is left of the grace, and none when the start failed', async () => {
  const stack = new ServiceStack();
  const left: number[] = [];
  stack.defer(() => void left.push(stack.graceLeftMs));
  expect(stack.graceLeftMs).toBe(0);
  await stack.stop(60_000);
  expect(left[0]).toBeGreaterThan(50_000);
  expect(left[0]).toBeLessThanOrEqual(60_000);
});
