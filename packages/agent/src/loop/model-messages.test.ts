import { describe, expect, it } from '@jest/globals';
import type { SessionMessage, ToolMessage, UploadRef, UserMessage } from '@concierge/contract';
import { messageTokens } from '../compaction/plan-compaction.ts';
import { mayNeedRoom, modelMessages, sessionBounds } from './model-messages.ts';

const at = '2026-11-20T10:00:00.000Z';
const image = (digit: string): UploadRef => ({ id: `u_${digit.repeat(32)}`, name: `${digit}.png`, type: 'image/png', size: 3 });
const shown = new Map(['1', '2'].map((digit) => [image(digit).id, { mediaType: 'image/png', base64: `bytes${digit}` }]));
const asked = (attachments?: UploadRef[]): UserMessage => ({
  id: 'm0',
  turnId: 't',
  at,
  role: 'user',
  text: 'look',
  sent: 'look',
  ...(attachments && { attachments }),
});
const calling: SessionMessage = {
  id: 'm1',
  turnId: 't',
  at,
  role: 'assistant',
  text: '',
  toolCalls: ['a', 'b'].map((id) => ({ id, name: 'view_attachment', arguments: '{}' })),
};
const result = (callId: string, rest: Partial<ToolMessage> = {}): ToolMessage => ({
  id: `m.${callId}`,
  turnId: 't',
  at,
  role: 'tool',
  callId,
  name: 'view_attachment',
  output: `result ${callId}`,
  isError: false,
  ...rest,
});
const sent = (...messages: SessionMessage[]): ReturnType<typeof modelMessages> => modelMessages({ summary: null, messages }, shown);
const note = (digit: string): object => ({
  type: 'text',
  text: `[Shown by view_attachment; the user did not send it: "${digit}.png" (${image(digit).id})]`,
});
const picture = (digit: string): object => ({ type: 'image', mediaType: 'image/png', base64: `bytes${digit}` });

describe('what a tool showed', () => {
  const looked = [asked(), calling, result('a', { attachments: [image('1')] }), result('b', { attachments: [image('2')] })];

  it('follows the last result of its reply, so that nothing stands between the results', () => {
    const messages = sent(...looked);
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user']);
    expect(messages.at(-1)).toEqual({ role: 'user', content: [note('1'), picture('1'), note('2'), picture('2')] });
  });

  it('stays where it was when the conversation goes on', () => {
    const before = sent(...looked);
    const after = sent(...looked, { ...calling, id: 'm2' }, result('a'), result('b'), asked());
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user', 'assistant', 'tool', 'tool', 'user']);
  });

  it('is sent once, however often it is attached and looked at', () => {
    const messages = sent(
      asked([image('1')]),
      calling,
      result('a', { attachments: [image('1')] }),
      result('b', { attachments: [image('1')] }),
    );
    const all = JSON.stringify(messages);
    expect(all.split('bytes1')).toHaveLength(2);
    expect(all).toContain('is shown above');
  });

  it('is mentioned when it is not loaded, and goes with a result that was cut', () => {
    const unknown = sent(asked(), calling, result('a', { attachments: [image('3')] }), result('b'));
    expect(unknown.at(-1)).toMatchObject({ content: [{ type: 'text' }, { type: 'text', text: expect.stringContaining('is not shown') }] });
    const cut = sent(asked(), calling, result('a', { attachments: [image('1')], pruned: true }), result('b'));
    expect(cut.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool']);
  });

  it('counts as an image where room is counted, until its result is cut', () => {
    const budget = { estimateTokens: (text: string) => text.length };
    const bare = messageTokens(result('a'), budget);
    const withImage = messageTokens(result('a', { attachments: [image('1')] }), budget);
    expect(withImage - bare).toBe(messageTokens(asked([image('1')]), budget) - messageTokens(asked(), budget));
    expect(withImage).toBeGreaterThan(bare);
    const cut = messageTokens(result('a', { pruned: true }), budget);
    expect(messageTokens(result('a', { attachments: [image('1')], pruned: true }), budget)).toBe(cut);
  });
});

describe('the first look at a conversation before a call', () => {
  const budget = { limitTokens: 1000, overheadCharacters: () => 100, overheadTokens: () => 25, estimateTokens: () => 0 };
  const look = (messages: SessionMessage[], tokens?: number): boolean =>
    mayNeedRoom(
      { messages, summary: null, contextTokens: tokens === undefined ? null : { tokens, messages: messages.length - 1 } },
      budget,
    );

  it('sees that there is room where no text of this length fills the window', () => {
    expect(look([asked()])).toBe(false);
    expect(look([asked(), result('a')], 900)).toBe(false);
  });

  it('leaves it to an estimate where a text of this length, an image or the provider’s count may fill the window', () => {
    expect(look([{ ...asked(), sent: 'x'.repeat(400) }])).toBe(true);
    expect(look([asked([image('1')])])).toBe(true);
    expect(look([asked(), result('a')], 1000)).toBe(true);
  });

  it('sees a session that has grown too long, whatever the provider has counted', () => {
    const { maxMessages, maxCharacters } = sessionBounds;
    expect(
      look(
        Array.from({ length: maxMessages + 1 }, () => asked()),
        0,
      ),
    ).toBe(true);
    expect(look([{ ...asked(), sent: 'x'.repeat(maxCharacters) }, asked()], 0)).toBe(true);
  });
});

describe('what the model is sent', () => {
  it('is the same objects as before for the same messages, and what has changed anew', () => {
    const known = new Map();
    const messages = [asked([image('1')]), calling, result('a')];
    const first = modelMessages({ summary: null, messages }, shown, known);
    const pruned = result('a', { pruned: true });
    const second = modelMessages({ summary: null, messages: [...messages, result('b')] }, new Map(), known);
    expect(second[1]).toBe(first[1]);
    expect(second[2]).toBe(first[2]);
    expect(JSON.stringify(second[0])).toContain('is not shown');
    const third = modelMessages({ summary: null, messages: [calling, pruned] }, shown, known);
    expect(third[0]).toBe(first[1]);
    expect(JSON.stringify(third[1])).toContain('was removed to save room');
  });
});
