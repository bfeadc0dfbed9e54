import { describe, expect, it } from '@jest/globals';
import { toolNameOf } from './tool-name.ts';

describe('toolNameOf', () => {
  it('puts the server before the tool', () => {
    expect(toolNameOf('crm', 'find-contact')).toBe('mcp__crm__find-contact');
  });

  it.each(['a.b', 'a/b', 'Größe', 'x'.repeat(200), ''])(
    'makes %j a name that providers take, and another one than its neighbours',
    (tool) => {
      const name = toolNameOf('crm', tool);
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/u);
      expect(name).not.toBe(toolNameOf('crm', `${tool}!`));
    },
  );

  it('keeps apart what only differs in characters that are not taken', () => {
    expect(toolNameOf('crm', 'a.b')).not.toBe(toolNameOf('crm', 'a b'));
    expect(toolNameOf('crm', 'a.b')).not.toBe(toolNameOf('crm', 'a_b'));
  });
});
