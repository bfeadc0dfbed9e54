import { describe, expect, it } from '@jest/globals';
import { closingLine, noReport, readOutcome, sumOutcomes } from './outcome.mjs';

const report = (numbers, assertionResults = []) => ({
  numPassedTests: 0,
  numFailedTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [{ assertionResults }],
  ...numbers,
});

describe('the closing line of a test run', () => {
  it('adds up all kinds of tests', () => {
    const outcomes = [readOutcome(report({ numPassedTests: 12 })), readOutcome(report({ numPassedTests: 3, numFailedTests: 2 }))];
    expect(closingLine(sumOutcomes(outcomes))).toBe('15 passed, 2 failed');
  });

  it('counts a file that does not load, and a Jest that left no report, as failures', () => {
    const outcomes = [readOutcome(report({ numRuntimeErrorTestSuites: 1 })), noReport];
    expect(closingLine(sumOutcomes(outcomes))).toBe('0 passed, 2 failed');
  });

  it('names and counts what was skipped', () => {
    const assertions = [
      { status: 'passed', fullName: 'a' },
      { status: 'pending', fullName: 'the index in PostgreSQL keeps tenants apart' },
      { status: 'todo', fullName: 'c' },
    ];
    const outcome = readOutcome(report({ numPassedTests: 1 }, assertions));
    expect(outcome.skipped).toEqual(['the index in PostgreSQL keeps tenants apart', 'c']);
    expect(closingLine(outcome)).toBe('1 passed, 0 failed, 2 skipped');
  });
});
