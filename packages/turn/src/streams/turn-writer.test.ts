import { describe, expect, it } from '@jest/globals';
import { coalesceMs } from './turn-writer.ts';

describe('coalesceMs', () => {
  it('hardly waits in a worker that has little to do', () => {
    expect(coalesceMs(1)).toBeLessThan(13);
  });

  it('waits longer the more turns run, and never longer than a reader notices', () => {
    expect(coalesceMs(64)).toBeGreaterThan(30);
    expect(coalesceMs(10_000)).toBe(50);
  });
});
