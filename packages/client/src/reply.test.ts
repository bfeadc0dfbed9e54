import { describe, expect, it } from '@jest/globals';
import type { TurnEvent, VisitorEvent } from '@concierge/contract';
import { ReplyText } from './reply.ts';

const delta = (words: string): TurnEvent => ({ type: 'text_delta', data: { delta: words } });
const step: VisitorEvent = { type: 'step', data: {} };
const result: TurnEvent = { type: 'tool_result', data: { id: 'c', name: 'x', output: '', isError: false } };

function read(...events: readonly (TurnEvent | VisitorEvent)[]): string {
  const reply = new ReplyText();
  for (const event of events) reply.add(event);
  return reply.text;
}

describe('a reply', () => {
  it('is every word in order, with a paragraph for each step', () => {
    expect(read(delta('Let me '), delta('look.'), step, step, delta('Two.'))).toBe('Let me look.\n\nTwo.');
  });

  it('loses the words since the last step when they are void', () => {
    expect(read(delta('One.'), step, delta('Tw'), { type: 'text_reset', data: { all: false } }, delta('Three.'))).toBe('One.\n\nThree.');
  });

  it('begins anew when all of it is void', () => {
    expect(read(delta('One.'), step, delta('Two.'), { type: 'text_reset', data: { all: true } }, delta('One!'))).toBe('One!');
  });

  it('gives the same for the events that an owner sees', () => {
    expect(read(delta('One.'), result, delta('Tw'), { type: 'text_reset', data: { reason: 'worker_lost' } }, delta('Three.'))).toBe(
      'One.\n\nThree.',
    );
    expect(read(delta('One.'), result, { type: 'text_reset', data: { reason: 'stream_lost' } }, delta('One!'))).toBe('One!');
  });
});
