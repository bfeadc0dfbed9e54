import { describe, expect, it } from '@jest/globals';
import { readable, renderLines } from './terminal.mjs';

const entry = (fields) => JSON.stringify({ level: 30, time: new Date(2026, 10, 20, 12, 31, 2).getTime(), service: 'worker', ...fields });

describe('a log line in the terminal', () => {
  it('shows time, level, message and fields, and leaves out what the prefix already shows', () => {
    expect(readable(entry({ msg: 'turn ended', turnId: 't_1', ms: 42 }))).toBe('12:31:02 info  turn ended turnId=t_1 ms=42');
  });

  it('shows the stack of an error on lines of its own', () => {
    expect(readable(entry({ level: 50, msg: 'failed', err: { message: 'no', stack: 'Error: no\n    at x' } }))).toBe(
      '12:31:02 error failed\nError: no\n    at x',
    );
  });

  it('leaves what is no log entry as it is', () => {
    expect(readable('plain words')).toBe('plain words');
    expect(readable('{"half": ')).toBe('{"half": ');
    expect(readable('{"level":"x"}')).toBe('{"level":"x"}');
  });

  it('stands behind the name of its service, line by line', () => {
    const lines = [entry({ level: 50, msg: 'failed', err: { stack: 'Error: no\n    at x' } }), 'plain words'];
    expect(renderLines('ui', lines, { isReadable: true })).toBe(
      'ui      | 12:31:02 error failed\nui      | Error: no\nui      |     at x\nui      | plain words\n',
    );
  });

  it('stays as it is where a file or a program takes it', () => {
    const line = entry({ msg: 'turn ended' });
    expect(renderLines('worker', [line], { isReadable: false })).toBe(`worker  | ${line}\n`);
  });
});
