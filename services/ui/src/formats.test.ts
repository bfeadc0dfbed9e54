import { describe, expect, it } from '@jest/globals';
import { Formats } from './formats.ts';

const english = new Formats('en');
const german = new Formats('de');

/** Intl separates numbers and units by spaces that do not break. */
const plain = (text: string): string => text.replaceAll(/\s/gu, ' ');

describe('Formats', () => {
  it('writes numbers, shares and money as the language does', () => {
    expect([english.number(12_345.67), german.number(12_345.67)]).toEqual(['12,345.7', '12.345,7']);
    expect([english.usd(1234.5), plain(german.usd(1234.5))]).toEqual(['$1,234.50', '1.234,50 $']);
    expect(english.usd(0.00312)).toBe('$0.0031');
    expect(plain(german.percent(0.42))).toBe('42 %');
  });

  it.each([
    [0, '0 bytes'],
    [1, '1 byte'],
    [999, '999 bytes'],
    [1500, '1.5 kB'],
    [2_000_000_000_000_000, '2,000 TB'],
  ])('writes %d bytes as %s', (count, text) => {
    expect(plain(english.bytes(count))).toBe(text);
  });

  it.each([
    [250, '250 ms'],
    [1500, '1.5 sec'],
    [42_000, '42 sec'],
    [330_000, '5.5 min'],
    [7_200_000, '2 hr'],
    [259_200_000, '3 days'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(plain(english.duration(ms))).toBe(text);
  });

  it('writes the days of a calendar and the places on an axis of time', () => {
    expect([english.day('2026-11-20'), german.day('2026-11-20')]).toEqual(['Nov 20, 2026', '20.11.2026']);
    const atMs = new Date(2026, 10, 20, 22, 36).getTime();
    expect([english.tick(atMs, 60_000), german.tick(atMs, 60_000)].map(plain)).toEqual(['10:36 PM', '22:36']);
    expect([english.tick(atMs, 30_000), german.tick(atMs, 30_000)].map(plain)).toEqual(['10:36:00 PM', '22:36:00']);
    expect([english.tick(atMs, 172_800_000), german.tick(atMs, 172_800_000)].map(plain)).toEqual(['Nov 20', '20. Nov.']);
  });

  it('says how long ago something was, and in how long it will be', () => {
    const nowMs = Date.parse('2026-11-20T12:00:00Z');
    expect(english.relative('2026-11-20T11:55:30Z', nowMs)).toBe('4 min. ago');
    expect(english.relative('2026-11-20T14:00:00Z', nowMs)).toBe('in 2 hr.');
    expect(german.relative('2026-11-19T12:00:00Z', nowMs)).toBe('gestern');
  });
});
