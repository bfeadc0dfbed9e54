import { expect } from '@jest/globals';
import { renderReport, type AuditReport } from './audit/auditor.ts';
import type { Verdict } from './scenarios.ts';

/**
 * Every promise was kept, and what `check` expects besides; if not, what the run left is kept for the one who reads the
 * error.
 */
export function holds(check: (report: AuditReport) => void = () => undefined): Verdict {
  return async (report, rig) => {
    try {
      expect(report.findings).toEqual([]);
      check(report);
    } catch (error) {
      throw new Error(`${renderReport(report)}\n\n${await rig.explain(report)}`, { cause: error });
    }
  };
}
