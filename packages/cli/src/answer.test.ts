import { PassThrough } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { facts, printAnswer, table } from './answer.ts';

describe('an answer', () => {
  it('is one line of JSON for programs and text for people', () => {
    const answer = { json: { tenantId: 'acme' }, text: 'tenant  acme' };
    const out = new PassThrough();
    printAnswer(answer, { json: true, out });
    printAnswer(answer, { json: false, out });
    expect(String(out.read())).toBe('{"tenantId":"acme"}\ntenant  acme\n');
  });

  it('lines columns up under their heads, and leaves no space at the end of a line', () => {
    const rows = [
      ['acme', 'standard', ''],
      ['a-longer-one', 'preview', 'suspended'],
    ];
    expect(table(['TENANT', 'PLAN', 'STATE'], rows)).toBe(
      ['TENANT        PLAN      STATE', 'acme          standard', 'a-longer-one  preview   suspended'].join('\n'),
    );
  });

  it('shows facts as names and values', () => {
    expect(facts({ id: 'k_1', scopes: 'admin' })).toBe('id      k_1\nscopes  admin');
  });
});
