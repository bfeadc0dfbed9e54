import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { readiness } from './readiness.ts';

/** Longer than a check may take. */
const STALL_MS = 3000;

function standStill(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
}

describe('a check of readiness', () => {
  it('is passed by an answer that arrived while this process stood still', async () => {
    const found = readiness({ other: async () => promisify(execFile)('sleep', ['0']) });
    standStill();
    expect(await found).toMatchObject({ status: 'ready', checks: { other: { ok: true } } });
  });

  it('is failed by one that never comes', async () => {
    const never = Promise.withResolvers<never>();
    expect(await readiness({ other: async () => never.promise })).toMatchObject({ status: 'unready', checks: { other: { ok: false } } });
  });
});
