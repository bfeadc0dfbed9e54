import { describe, expect, it } from '@jest/globals';
import { limits } from '@concierge/contract';
import { BodyBudget } from './body-budget.ts';

const { openAiBodyMaxBytes: largest, bodiesMaxBytes: room, bodiesOfPeerMaxBytes: share, jsonBodyMaxBytes: small } = limits;
const overloaded = expect.objectContaining({ code: 'overloaded', retryAfterSeconds: 2 });

/** With every place for large bodies taken, by many peers. */
function full(): BodyBudget {
  const budget = new BodyBudget();
  for (let held = 0; held < room; held += largest) budget.reserve(`peer ${String(held)}`, largest);
  return budget;
}

describe('BodyBudget', () => {
  it('refuses what no longer fits', () => {
    expect(() => full().reserve('another', largest)).toThrow(overloaded);
  });

  it('gives one peer its share and leaves the rest to the others', () => {
    const budget = new BodyBudget();
    for (let held = 0; held < share; held += largest) budget.reserve('greedy', largest);
    expect(() => budget.reserve('greedy', largest)).toThrow(overloaded);
    expect(() => budget.reserve('modest', largest)).not.toThrow();
  });

  it('counts small bodies apart, so that large ones never take their place, and bounds them too', () => {
    const budget = full();
    for (let held = 0; held < share; held += small) budget.reserve('greedy', small);
    expect(() => budget.reserve('greedy', small)).toThrow(overloaded);
    expect(() => budget.reserve('modest', small)).not.toThrow();
  });

  it('gives room back when a body turns out smaller, and all of it at the end', () => {
    const budget = new BodyBudget();
    for (let round = 0; round < 3 * (room / largest); round += 1) {
      using held = budget.reserve('peer', largest);
      held.shrinkTo(10);
      using other = budget.reserve('peer', share - 10);
      other.shrinkTo(share);
    }
    expect(() => budget.reserve('peer', share)).not.toThrow();
  });
});
