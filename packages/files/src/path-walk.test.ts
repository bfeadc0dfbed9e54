import { describe, expect, it } from '@jest/globals';
import { AppError } from '@concierge/contract';
import { nameProblem, parsePath } from './path-walk.ts';

describe('paths', () => {
  it('splits a relative path into its names', () => {
    expect(parsePath('skills/take-notes/SKILL.md')).toEqual(['skills', 'take-notes', 'SKILL.md']);
    expect(parsePath('memory/große Übersicht.md')).toEqual(['memory', 'große Übersicht.md']);
    expect(parsePath('a'.repeat(255))).toHaveLength(1);
  });

  it.each([
    ['an empty path', ''],
    ['an absolute path', '/etc/passwd'],
    ['a parent folder', '../other/tenant.json'],
    ['a parent folder in the middle', 'memory/../tenant.json'],
    ['a dot', './MEMORY.md'],
    ['an empty part', 'memory//note.md'],
    ['a trailing slash', 'memory/'],
    ['NUL', 'MEMORY.md\0.png'],
    ['a line break', 'memory/a\nb.md'],
    ['an escape', 'memory/\u001b[31m.md'],
    ['a C1 control character', 'memory/\u0085.md'],
    ['a backslash', 'memory\\note.md'],
    ['a name over 255 bytes', 'ä'.repeat(128)],
    ['a name that NFKC changes', 'ﬁle.md'],
    ['a decomposed name', 'U\u0308ber.md'],
    ['a full-width dot', '\uFF0E\uFF0E/x'],
    ['a lone surrogate', 'a\uD800.md'],
    ['a temporary name of ours', 'memory/.tmp-1'],
    ['too many parts', Array.from({ length: 33 }, () => 'a').join('/')],
  ])('refuses %s', (_what, path) => {
    expect(() => parsePath(path)).toThrow(AppError);
    expect(() => parsePath(path)).toThrow(expect.objectContaining({ code: 'invalid_request' }));
  });

  it('has no objection to ordinary names', () => {
    for (const name of ['.gitignore', 'a b', '日本語.md', 'x'.repeat(255), '...']) expect(nameProblem(name)).toBeUndefined();
  });
});
