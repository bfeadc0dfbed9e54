import { describe, expect, it } from '@jest/globals';
import { safeFileName, sniffType } from './uploaded-file.ts';

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

/** The head of a PNG, which contains only its size: all that is read of it. */
function png(width: number, height: number): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d49484452000000000000000008060000000000000000000000', 'hex');
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return Buffer.concat([head, Buffer.from('0000000049454e44ae426082', 'hex')]);
}

const gif = Buffer.concat([Buffer.from('GIF89a'), Buffer.from([2, 0, 3, 0, 0x80, 0, 0])]);
const pdf = Buffer.from('%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF');

describe('sniffType', () => {
  it.each([
    ['image/png', png(640, 480)],
    ['image/gif', gif],
    ['application/pdf', pdf],
    ['text/plain', Buffer.from('# Notes\r\n\tGrüße, 日本\n')],
    ['text/plain', Buffer.from('<html><script>alert(1)</script></html>')],
    ['text/plain', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"></svg>')],
    ['text/plain', Buffer.from('\uFEFFwith a mark')],
  ])('knows %s by its bytes', async (type, bytes) => {
    expect(await sniffType(bytes, 'x')).toBe(type);
  });

  it.each([
    ['an archive', Buffer.from('504b0304140000000800', 'hex')],
    ['a program', Buffer.from('7f454c460201010000000000', 'hex')],
    ['text with a zero byte', Buffer.from('a\u0000b')],
    ['Latin-1', Buffer.from([0x47, 0x72, 0xfc, 0xdf, 0x65])],
    ['UTF-16', Buffer.from('\uFEFFhello', 'utf16le')],
    ['a cut image', png(1, 1).subarray(0, 12)],
    ['a picture without an area', png(0, 5)],
  ])('refuses %s', async (_name, bytes) => {
    await expect(sniffType(bytes, 'x')).rejects.toMatchObject({ code: 'unsupported_media_type' });
  });

  it('refuses a small file that would be an enormous picture', async () => {
    await expect(sniffType(png(60_000, 60_000), 'bomb.png')).rejects.toMatchObject({ code: 'too_large' });
  });
});
