import { describe, expect, it } from '@jest/globals';
import { StatCachePolicy } from './stat-cache.ts';

describe('StatCachePolicy', () => {
  const policyWithClock = () => {
    const clock = { ms: 0 };
    const policy = new StatCachePolicy({ now: () => clock.ms });
    const look = (tookMs: number): void => {
      policy.time(() => {
        clock.ms += tookMs;
      });
    };
    return { clock, policy, look };
  };

  it('looks in place as long as that is quick', () => {
    const { policy, look } = policyWithClock();
    for (let call = 0; call < 1000; call += 1) look(0.003);
    expect(policy.inPlace).toBe(true);
  });

  it.each([100, 20])('forgives the slow call of a busy machine, one in %s', (every) => {
    const { policy, look } = policyWithClock();
    for (let call = 0; call < 2000; call += 1) look(call % every === 0 ? 10 : 0.003);
    expect(policy.inPlace).toBe(true);
  });

  it('does not forgive a disk that answers every tenth look from elsewhere', () => {
    const { policy, look } = policyWithClock();
    for (let call = 0; call < 2000; call += 1) look(call % 10 === 0 ? 10 : 0.003);
    expect(policy.inPlace).toBe(false);
  });

  it('goes through the thread pool for a while where every look is slow', () => {
    const { clock, policy, look } = policyWithClock();
    for (let call = 0; call < 8; call += 1) look(1);
    expect(policy.inPlace).toBe(false);
    clock.ms += 30_000;
    expect(policy.inPlace).toBe(true);
  });

  it('hands on what the look throws, and times it all the same', () => {
    const { clock, policy } = policyWithClock();
    const missing = (): never => {
      clock.ms += 1;
      throw new Error('missing');
    };
    for (let call = 0; call < 8; call += 1) expect(() => policy.time(missing)).toThrow('missing');
    expect(policy.inPlace).toBe(false);
  });
});
