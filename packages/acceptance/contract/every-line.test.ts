import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { heldElsewhere, withoutPromise } from './held-elsewhere.ts';
import { specLines } from './spec-lines.ts';

/** Ids that test files of this folder name in `promise([…], …)`. */
function coveredIds(): Set<string> {
  const ids = new Set<string>();
  const folder = new URL('./', import.meta.url);
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.test.ts'))) {
    for (const [, list = ''] of readFileSync(new URL(name, folder), 'utf8').matchAll(/promise\(\s*\[([^\]]*)\]/gu)) {
      for (const [, id = ''] of list.matchAll(/'([^']+)'/gu)) ids.add(id);
    }
  }
  return ids;
}

describe('the specification', () => {
  const lines = specLines();
  const known = new Set(lines.map(({ id }) => id));
  const covered = new Set([...coveredIds(), ...Object.keys(heldElsewhere)]);

  it('has a case for every line that promises something', () => {
    const missing = lines.filter(({ id }) => !covered.has(id) && !(id in withoutPromise));
    expect(missing.map(({ id, text }) => `${id}: ${text}`)).toEqual([]);
  });

  it('has every test that is named for a line', () => {
    const missing = Object.entries(heldElsewhere).flatMap(([id, proofs]) =>
      proofs
        .filter(({ file, name }) => !readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8').includes(name))
        .map(({ file, name }) => `${id}: ${file}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('has every line that a case or a reason names', () => {
    expect([...covered, ...Object.keys(withoutPromise)].filter((id) => !known.has(id))).toEqual([]);
  });

  it('has no line with both a case and a reason to have none', () => {
    expect(Object.keys(withoutPromise).filter((id) => covered.has(id))).toEqual([]);
  });
});
