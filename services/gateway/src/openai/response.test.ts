import { describe, expect, it } from '@jest/globals';
import { ResponseObject, type ChatReply, type FinishReason, type TurnEvent } from '@concierge/contract';
import { z } from 'zod';
import { ResponseEvents, buildResponse } from './response.ts';

const facts = {
  turnId: 't_1',
  contactId: 'c'.repeat(32),
  model: 'cs',
  createdAt: 1_700_000_000,
  instructions: 'Be brief.',
  metadata: { order: '7' },
  previousResponseId: 'resp_t_0',
  user: 'ann',
};
const session: TurnEvent = { type: 'session', data: { contact_id: facts.contactId, turnId: 't_1' } };
const text = (delta: string): TurnEvent => ({ type: 'text_delta', data: { delta } });
const call: readonly TurnEvent[] = [
  { type: 'tool_call_start', data: { id: 'c1', name: 'read', input: { path: 'SOUL.md' } } },
  { type: 'tool_call_end', data: { id: 'c1', name: 'read', durationMs: 1, isError: false } },
  { type: 'tool_result', data: { id: 'c1', name: 'read', output: 'secret', isError: false } },
];
const done = (finishReason: FinishReason = 'stop'): TurnEvent => ({
  type: 'done',
  data: { inputTokens: 3, outputTokens: 5, finishReason },
});
const failed: TurnEvent = { type: 'error', data: { code: 'turn_timeout', message: 'It took too long.', retryable: true, turnId: 't_1' } };

const Event = z.looseObject({ type: z.string(), sequence_number: z.int(), response: ResponseObject.optional() });

function events(encoder: ResponseEvents, given: readonly TurnEvent[]): z.infer<typeof Event>[] {
  const frames = given.flatMap((event) => encoder.encode(event));
  for (const { event, data } of frames) expect(data).toMatchObject({ type: event });
  return frames.map(({ data }) => Event.parse(data));
}

describe('ResponseEvents', () => {
  it('come in their order, numbered, and do not show the tools', () => {
    const all = events(new ResponseEvents(facts), [session, text('a'), ...call, text('b'), done()]);
    expect(all.map(({ type }) => type)).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(all.map(({ sequence_number: number }) => number)).toEqual([...all.keys()]);
    expect(JSON.stringify(all)).not.toContain('secret');
    const place = { item_id: 'msg_t_1', output_index: 0, content_index: 0 };
    expect(all[4]).toMatchObject({ ...place, delta: 'a' });
    expect(all[6]).toMatchObject({ ...place, text: 'ab' });
    expect(all[8]).toMatchObject({ output_index: 0, item: { status: 'completed', content: [{ type: 'output_text', text: 'ab' }] } });
    expect(all[0]?.response).toMatchObject({ id: 'resp_t_1', status: 'in_progress', output: [], usage: null });
    expect(all[9]?.response).toEqual(buildResponse(facts, { ...reply, reply: 'ab' }));
  });

  it('have a message even where there is no text', () => {
    const all = events(new ResponseEvents(facts), [session, done()]);
    expect(all.map(({ type }) => type)).toContain('response.output_item.added');
    expect(all.at(-1)?.response?.output[0]?.content[0]?.text).toBe('');
  });

  it.each([
    ['stop', 'response.completed', null],
    ['max_turns', 'response.completed', null],
    ['length', 'response.incomplete', { reason: 'max_output_tokens' }],
    ['content_filter', 'response.incomplete', { reason: 'content_filter' }],
    ['cancelled', 'response.incomplete', { reason: 'cancelled' }],
  ] as const)('say %s as %s', (reason, type, details) => {
    const last = events(new ResponseEvents(facts), [session, text('a'), done(reason)]).at(-1);
    expect(last).toMatchObject({ type, response: { incomplete_details: details } });
  });

  it('end a failed turn with its text and the reason', () => {
    const encoder = new ResponseEvents(facts);
    const last = events(encoder, [session, text('a'), failed]).at(-1);
    expect(last).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'turn_timeout', message: 'It took too long.' }, output: [{ status: 'incomplete' }] },
    });
    expect(encoder.cutOff()).toEqual([]);
    expect(events(new ResponseEvents(facts), [session, failed]).at(-1)?.response?.output).toEqual([]);
  });

  it('announce that they are cut off, unless the turn has ended', () => {
    const encoder = new ResponseEvents(facts);
    events(encoder, [session]);
    expect(encoder.cutOff()).toMatchObject([
      { event: 'response.failed', data: { sequence_number: 2, response: { error: { code: 'shutting_down' } } } },
    ]);
    expect(encoder.cutOff()).toEqual([]);
  });
});

const reply: ChatReply = {
  contact_id: facts.contactId,
  turnId: 't_1',
  reply: 'said',
  toolCalls: [{ id: 'c1', name: 'read', input: {}, output: 'secret', isError: false }],
  usage: { inputTokens: 3, outputTokens: 5 },
  finishReason: 'stop',
};

describe('buildResponse', () => {
  it('is the whole reply with the fields of the request', () => {
    const whole = buildResponse(facts, reply);
    expect(ResponseObject.parse(whole)).toEqual(whole);
    expect(whole).toMatchObject({
      id: 'resp_t_1',
      status: 'completed',
      instructions: 'Be brief.',
      metadata: { order: '7' },
      previous_response_id: 'resp_t_0',
      user: 'ann',
      conversation: { id: facts.contactId },
      output: [{ id: 'msg_t_1', content: [{ text: 'said' }] }],
      usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
    });
    expect(JSON.stringify(whole)).not.toContain('secret');
  });
});
