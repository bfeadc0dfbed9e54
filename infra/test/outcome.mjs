// Counting what Jest reports, and the line with which a run ends.

/** Numbers of one kind of tests, and the names of what was skipped, from Jest's JSON report. */
export function readOutcome(report) {
  const skipped = report.testResults.flatMap(({ assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'pending' || status === 'todo' || status === 'skipped')
      .map(({ fullName }) => fullName),
  );
  return {
    passed: report.numPassedTests,
    // A file that does not even load has no failed test, and is a failure all the same.
    failed: report.numFailedTests + report.numRuntimeErrorTestSuites,
    skipped,
  };
}

/** What counts when Jest itself ended without a report. */
export const noReport = { passed: 0, failed: 1, skipped: [] };

export function sumOutcomes(outcomes) {
  return {
    passed: outcomes.reduce((sum, { passed }) => sum + passed, 0),
    failed: outcomes.reduce((sum, { failed }) => sum + failed, 0),
    skipped: outcomes.flatMap(({ skipped }) => skipped),
  };
}

/** `N passed, N failed`, and `, N skipped` when some were. */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ''}`;
}
