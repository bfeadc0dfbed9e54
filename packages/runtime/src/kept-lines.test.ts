import { describe, expect, it } from '@jest/globals';
import { KeptLines } from './kept-lines.ts';

const line = (level: number, more: object): string => `${JSON.stringify({ level, time: '2026-11-27T10:00:00.000Z', ...more })}\n`;
const open = (): KeptLines => {
  const lines = new KeptLines();
  lines.open();
  return lines;
};

describe('lines that are kept', () => {
  it('are warnings and errors, and all of a turn that has one', () => {
    const lines = open();
    const all = [
      line(30, { turnId: 't_good', msg: 'began' }),
      line(30, { turnId: 't_bad', msg: 'began' }),
      line(30, { msg: 'of no turn' }),
      line(50, { msg: 'an error of no turn' }),
      line(40, { turnId: 't_bad', msg: 'failed' }),
      line(30, { turnId: 't_bad', msg: 'ended' }),
      line(30, { turnId: 't_good', msg: 'ended' }),
    ];
    for (const one of all) lines.add(one);
    expect(lines.take()).toEqual([all[3], all[1], all[4], all[5]].map((kept) => kept?.trimEnd()));
    expect(lines.take()).toEqual([]);
  });

  it('are none before there is a place for them, and never more than are taken in time', () => {
    const lines = new KeptLines();
    lines.add(line(50, { msg: 'before' }));
    lines.open();
    for (let count = 0; count < 5000; count += 1) lines.add(line(50, { msg: `error ${String(count)}` }));
    const taken = lines.take();
    expect(taken.length).toBe(2000);
    expect(taken.at(-1)).toContain('error 4999');
  });
});
