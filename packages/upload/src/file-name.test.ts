import { describe, expect, it } from '@jest/globals';
import { safeFileName } from './file-name.ts';

describe('safeFileName', () => {
  it.each([
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    [String.raw`C:\fakepath\photo.png`, 'photo.png'],
    ['Grüße 日本.txt', 'Grüße 日本.txt'],
    ['u\u0308ber.txt', 'über.txt'],
    ['a\u0000b\r\n.txt', 'ab.txt'],
    ['harmless\u202Efdp.exe', 'harmlessfdp.exe'],
    ['..', 'file'],
    ['', 'file'],
    ['folder/', 'file'],
    ['   ', 'file'],
    ['\ud800.txt', '\ufffd.txt'],
  ])('makes of %p %p', (given, expected) => {
    expect(safeFileName(given)).toBe(expected);
  });

  it('takes no longer for a name of a million marks that have a combining order', () => {
    const name = safeFileName(`a${'\u0301\u0323'.repeat(500_000)}.pdf`);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    expect(name).toMatch(/\.pdf$/u);
  });

  it('cuts a long name to 255 bytes, keeps its extension and no half character', () => {
    const name = safeFileName(`${'ü'.repeat(300)}.pdf`);
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255);
    expect(name).toMatch(/^ü+\.pdf$/u);
  });
});
