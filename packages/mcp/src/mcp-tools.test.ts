import { describe, expect, it } from '@jest/globals';
import { buildToolName } from './mcp-tools.ts';

describe('buildToolName', () => {
  it('puts the server before the tool', () => {
    expect(buildToolName('crm', 'find-contact')).toBe('mcp__crm__find-contact');
  });

  it.each(['a.b', 'a/b', 'Größe', 'x'.repeat(200), ''])(
    'makes %j a name that providers take, and another one than its neighbours',
    (tool) => {
      const name = buildToolName('crm', tool);
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/u);
      expect(name).not.toBe(buildToolName('crm', `${tool}!`));
    },
  );

  it('keeps apart what only differs in characters that are not taken', () => {
    expect(buildToolName('crm', 'a.b')).not.toBe(buildToolName('crm', 'a b'));
    expect(buildToolName('crm', 'a.b')).not.toBe(buildToolName('crm', 'a_b'));
  });
});
