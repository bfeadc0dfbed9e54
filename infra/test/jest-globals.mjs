// What tests import from '@jest/globals'. Modules stay loaded from one test file to the next, and what they import here
// is always that of the file which runs.

export let afterAll;
export let afterEach;
export let beforeAll;
export let beforeEach;
export let describe;
export let expect;
export let it;
export let jest;

/** From now on. */
export function setGlobals(globals) {
  ({ afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } = globals);
}
