import { describe, expect, it } from '@jest/globals';
import type { TurnEvent } from '@concierge/contract';
import { AppendOnlyText, repeatNotice } from './reply-encoder.ts';

const text = (delta: string): TurnEvent => ({ type: 'text_delta', data: { delta } });
const reset = (reason: 'worker_lost' | 'stream_lost' = 'worker_lost'): TurnEvent => ({ type: 'text_reset', data: { reason } });
const result: TurnEvent = { type: 'tool_result', data: { id: 'c1', name: 'read', output: 'x', isError: false } };
const done: TurnEvent = { type: 'done', data: { inputTokens: 1, outputTokens: 1, finishReason: 'stop' } };

/** What is sent for each event; what a client has in the end is all of it. */
function sent(...events: readonly TurnEvent[]): string[] {
  const appended = new AppendOnlyText();
  return events.map((event) => appended.add(event));
}

describe('AppendOnlyText', () => {
  it('passes text on as it comes, tools or not', () => {
    expect(sent(text('I look. '), result, text('It is '), text('open.'), done)).toEqual(['I look. ', '', 'It is ', 'open.', '']);
  });

  it('sends nothing twice when the same text comes again, cut anywhere', () => {
    const events = [text('one '), text('two th'), reset(), text('one two'), text(' '), text('three'), text(' four'), done];
    expect(sent(...events)).toEqual(['one ', 'two th', '', '', '', 'ree', ' four', '']);
  });

  it('announces once that the text starts again where other text comes, from the last tool result on', () => {
    const events = [text('kept '), result, text('We open at 9'), reset(), text('We open '), text('at 10.'), text(' Sharp.'), done];
    expect(sent(...events)).toEqual(['kept ', '', 'We open at 9', '', '', `${repeatNotice}We open at 10.`, ' Sharp.', '']);
  });

  it('announces it when less comes again than there was', () => {
    expect(sent(text('one two'), reset(), text('one'), done)).toEqual(['one two', '', '', `${repeatNotice}one`]);
  });

  it('takes a turn that is replayed from its start, tool calls included, for the same text', () => {
    const events = [
      text('first '),
      result,
      text('second'),
      reset('stream_lost'),
      text('first '),
      result,
      text('second'),
      text(' third'),
      done,
    ];
    expect(sent(...events)).toEqual(['first ', '', 'second', '', '', '', '', ' third', '']);
  });

  it('goes back to the start when the whole turn is void and replayed differently', () => {
    const events = [text('first '), result, text('second'), reset('stream_lost'), text('first '), result, text('other'), done];
    expect(sent(...events)).toEqual(['first ', '', 'second', '', '', '', `${repeatNotice}first other`, '']);
  });

  it('goes by what the client has when a replay breaks off as well', () => {
    const events = [text('one two'), reset(), text('one'), reset(), text('one two three'), done];
    expect(sent(...events)).toEqual(['one two', '', '', '', ' three', '']);
  });

  it('takes a reset before any text, or right after a tool result, for nothing', () => {
    expect(sent(reset(), text('a'), result, reset(), text('b'), done)).toEqual(['', 'a', '', '', 'b', '']);
  });
});
