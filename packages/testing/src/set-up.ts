import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';

/** Opens what the tests need. What it puts on the stack is closed after them, the last first, also when it fails. */
export type SetUp = (stack: AsyncDisposableStack) => Promise<void> | void;

/** Once for all tests of the file, or of the block. */
export function setUpOnce(setUp: SetUp): void {
  const stack = new AsyncDisposableStack();
  beforeAll(async () => {
    await setUp(stack);
  });
  afterAll(async () => stack.disposeAsync());
}

/** Anew for each test. */
export function setUpEach(setUp: SetUp): void {
  let stack: AsyncDisposableStack;
  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    await setUp(stack);
  });
  afterEach(async () => stack.disposeAsync());
}
