import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@concierge/testing';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { TypeCheck } from './type-check.mjs';

let root;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'concierge-types-'));
  writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true, noEmit: true }, files: ['a.ts'] }));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('reports the errors of what is there now, and that they are gone', async () => {
  const reports = [];
  const types = new TypeCheck(root, (report) => reports.push(report));
  writeFileSync(join(root, 'a.ts'), "export const count: number = 'one';");
  types.run();
  await eventually(() => reports.length === 1);
  expect(reports[0]).toMatchObject({ hasErrors: true, hadErrors: false, output: expect.stringContaining('a.ts') });
  writeFileSync(join(root, 'a.ts'), 'export const count: number = 1;');
  // Overtaken at once: only the second check counts.
  types.run();
  types.run();
  await eventually(() => reports.length === 2);
  expect(reports[1]).toMatchObject({ hasErrors: false, hadErrors: true });
  await types.stop();
});
