import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { checkTexts } from './catalog-texts.mjs';

let root;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'catalog-texts-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** The findings in a page that shows this. */
function checkPage(shown) {
  const path = join(root, 'services/ui/web/src/page.tsx');
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `const words = {};\n// Ünïcödé before it\nexport const Page = () => (\n${shown}\n);\n`);
  return checkTexts(root);
}

describe('the check of texts', () => {
  it.each([
    ['between tags', '<p>Read this</p>', 'Read this'],
    ['in a value', "<p>{'Read this'}</p>", 'Read this'],
    ['in one of two values', "<p>{busy ? 'Wait' : words.go}</p>", 'Wait'],
    ['in a template', '<p>{`${count} messages`}</p>', 'messages'],
    ['behind a condition', "<p>{busy && 'Wait'}</p>", 'Wait'],
    ['in a name for screen readers', '<p aria-label="Close it" />', 'Close it'],
    ['in a hint', '<input placeholder="Your name" />', 'Your name'],
  ])('finds one %s, with its line', (_place, shown, text) => {
    expect(checkPage(shown)).toEqual([`services/ui/web/src/page.tsx:4: “${text}” is in no catalog`]);
  });

  it('leaves signs, classes, commands and names as they are', () => {
    const shown = '<p className="flex gap" data-state="done">{words.a} · <code>npm start</code> <b title={words.b}>Concierge</b> –</p>';
    expect(checkPage(shown)).toEqual([]);
  });
});
