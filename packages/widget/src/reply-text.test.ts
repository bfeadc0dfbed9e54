import { describe, expect, it } from '@jest/globals';
import { ReplyText, type ReplyEvent } from './reply-text.ts';

const delta = (words: string): ReplyEvent => ({ type: 'text_delta', delta: words });

function told(...events: readonly ReplyEvent[]): string {
  const reply = new ReplyText();
  for (const event of events) reply.add(event);
  return reply.text;
}

describe('a reply', () => {
  it('is every word in order, with a paragraph for each step', () => {
    expect(told(delta('Let me '), delta('look.'), { type: 'step' }, { type: 'step' }, delta('Two.'))).toBe('Let me look.\n\nTwo.');
  });

  it('loses the words since the last step when they are void', () => {
    expect(told(delta('One.'), { type: 'step' }, delta('Tw'), { type: 'text_reset', all: false }, delta('Three.'))).toBe('One.\n\nThree.');
  });

  it('begins anew when all of it is void', () => {
    expect(told(delta('One.'), { type: 'step' }, delta('Two.'), { type: 'text_reset', all: true }, delta('One!'))).toBe('One!');
  });
});
