import { describe, expect, it } from '@jest/globals';
import { ToolCallSlots } from './tool-call-slots.ts';
import type { ToolCallDelta } from './chunk.ts';

function assemble(...deltas: ToolCallDelta[]) {
  const slots = new ToolCallSlots();
  for (const delta of deltas) slots.add(delta);
  return slots.finish();
}

describe('ToolCallSlots', () => {
  it('joins arguments by index', () => {
    expect(
      assemble(
        { index: 0, id: 'a', function: { name: 'read', arguments: '{"p' } },
        { index: 1, id: 'b', function: { name: 'write', arguments: '' } },
        { index: 0, function: { arguments: '":1}' } },
        { index: 1, function: { arguments: '{}' } },
      ),
    ).toEqual([
      { id: 'a', name: 'read', arguments: '{"p":1}' },
      { id: 'b', name: 'write', arguments: '{}' },
    ]);
  });

  it('distinguishes parallel calls that all carry index 0', () => {
    expect(
      assemble(
        { index: 0, id: 'a', function: { name: 'read', arguments: '{}' } },
        { index: 0, id: 'b', function: { name: 'read', arguments: '{"x":1}' } },
      ),
    ).toEqual([
      { id: 'a', name: 'read', arguments: '{}' },
      { id: 'b', name: 'read', arguments: '{"x":1}' },
    ]);
  });

  it('takes deltas without an index as belonging to the last call', () => {
    expect(assemble({ id: 'a', function: { name: 'read', arguments: '{' } }, { function: { arguments: '}' } })).toEqual([
      { id: 'a', name: 'read', arguments: '{}' },
    ]);
  });

  it('takes a name once however often it is repeated', () => {
    expect(
      assemble({ index: 0, id: 'a', function: { name: 'read' } }, { index: 0, id: 'a', function: { name: 'read', arguments: '{}' } }),
    ).toEqual([{ id: 'a', name: 'read', arguments: '{}' }]);
  });

  it('gives the second of two calls with one id another', () => {
    const [first, second] = assemble({ index: 0, id: 'a', function: { name: 'x' } }, { index: 1, id: 'a', function: { name: 'y' } });
    expect(first?.id).toBe('a');
    expect(second?.id).toMatch(/^call_[0-9a-f]{32}$/u);
  });
});
