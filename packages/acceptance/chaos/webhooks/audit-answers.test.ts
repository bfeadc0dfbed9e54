import { describe, expect, it } from '@jest/globals';
import { auditAnswers, type Correspondence } from './audit-answers.ts';

const clean: Correspondence = { person: '49', acknowledged: [1, 2, 3], heard: [1, 2, 3], unsure: new Set(), saved: [1, 2, 3] };

function kindsIn(change: Partial<Correspondence>): string[] {
  return auditAnswers({ ...clean, ...change }).map(({ invariant, kind }) => `${invariant} ${kind}`);
}

describe('what a contact was answered', () => {
  it('is in order when every message was answered once, after the ones before it', () => {
    expect(kindsIn({})).toEqual([]);
  });

  it('is out of order when a later message was answered first, on the phone or in the file', () => {
    expect(kindsIn({ heard: [1, 3, 2] })).toEqual(['I19 disorder']);
    expect(kindsIn({ saved: [1, 3, 2] })).toEqual(['I19 disorder']);
  });

  it('goes by acknowledgements and not by numbers', () => {
    expect(kindsIn({ acknowledged: [2, 1, 3], heard: [2, 1, 3], saved: [2, 1, 3] })).toEqual([]);
    expect(kindsIn({ acknowledged: [2, 1, 3] })).toEqual(['I19 disorder', 'I19 disorder']);
  });

  it('lacks an answer, or has one twice', () => {
    expect(kindsIn({ heard: [1, 3] })).toEqual(['I1 unanswered']);
    expect(kindsIn({ heard: [1, 2, 2, 3] })).toEqual(['I2 doubled']);
  });

  it('may lack what the service reports as unknown', () => {
    expect(kindsIn({ heard: [1, 3], unsure: new Set([2]) })).toEqual([]);
  });
});
