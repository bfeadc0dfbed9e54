import { describe, expect, it } from '@jest/globals';
import { ChatCompletionBody, limits, ResponseBody } from '@concierge/contract';
import { composeMessage, type ComposedMessage } from './compose-message.ts';
import { readResponseInput, readChatMessages } from './openai-messages.ts';

const pixel = 'data:image/png;base64,AAAA';
const image = { type: 'image_url', image_url: { url: pixel } };

function fromMessages(messages: readonly object[], continues = false): ComposedMessage {
  return composeMessage(readChatMessages(ChatCompletionBody.parse({ model: 'cs', messages })), { continues, param: 'messages' });
}

function fromInput(body: object): ComposedMessage {
  return composeMessage(readResponseInput(ResponseBody.parse({ model: 'cs', ...body })), { continues: false, param: 'input' });
}

const user = (content: unknown): object => ({ role: 'user', content });
const assistant = (content: unknown): object => ({ role: 'assistant', content });
const system = (content: unknown): object => ({ role: 'system', content });

describe('composeMessage', () => {
  it('is the new message and nothing else where there is nothing else', () => {
    expect(fromMessages([user('hello')])).toEqual({ text: 'hello', files: [], newFiles: 0 });
    expect(fromInput({ input: 'hello' })).toEqual({ text: 'hello', files: [], newFiles: 0 });
    expect(
      fromMessages([
        user([
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ]),
      ]).text,
    ).toBe('a\nb');
    expect(fromMessages([user('a'), user('b')]).text).toBe('a\nb');
  });

  it('labels instructions and earlier messages, in the words of the caller', () => {
    const messages = [system('Be brief.'), user('Hi'), assistant('Hello!'), { role: 'developer', content: 'In French.' }, user('Open?')];
    expect(fromMessages(messages)).toMatchObject({
      preface:
        '[Instructions of the application that asks]\nBe brief.\n\nIn French.\n\n' +
        '[The conversation so far, as the application tells it]\nUser: Hi\n\nAssistant: Hello!',
      text: 'Open?',
    });
    const items = [
      { role: 'user', content: 'Hi' },
      { type: 'reasoning', id: 'r', summary: [] },
      answer,
      { role: 'user', content: 'Open?' },
    ];
    expect(fromInput({ instructions: 'Be brief.', input: items }).preface).toContain('Be brief.\n\n[The conversation so far');
    expect(fromInput({ input: items })).toMatchObject({ preface: expect.stringMatching(/Assistant: Hello!$/u), text: 'Open?' });
  });

  it('leaves out earlier messages where the conversation is kept here', () => {
    expect(fromMessages([user('Hi'), assistant('Hello!'), user('Open?'), user('Today?')], true).text).toBe('Open?\nToday?');
    expect(fromMessages([system('Be brief.'), user('Hi'), assistant('Hello!'), user('Open?')], true)).toMatchObject({
      preface: '[Instructions of the application that asks]\nBe brief.',
      text: 'Open?',
    });
  });

  it('names images and files, and shows where in the conversation they were', () => {
    const file = { type: 'file', file: { filename: 'menu.pdf', file_data: 'AAAA' } };
    const { preface, text, files } = fromMessages([
      user([{ type: 'text', text: 'Look' }, image, file]),
      assistant('Nice'),
      user(['And', image].map(part)),
    ]);
    expect(preface).toContain('User: Look\n[image-1]\n[menu.pdf]\n\nAssistant: Nice');
    expect(text).toBe('And');
    expect(files.map(({ name }) => name)).toEqual(['image-1', 'menu.pdf', 'image-3']);
  });

  it('takes addresses of the web for files', () => {
    const { files } = fromMessages([user([{ type: 'image_url', image_url: { url: 'HTTPS://example.com/a.png' } }])]);
    expect(files).toMatchObject([{ name: 'image-1', file: { url: 'HTTPS://example.com/a.png' } }]);
    const remote = { type: 'input_file', file_url: 'https://example.com/a.pdf', filename: 'a.pdf' };
    expect(fromInput({ input: [user([remote])] }).files).toMatchObject([{ name: 'a.pdf', file: { url: 'https://example.com/a.pdf' } }]);
  });

  it('has a text even for an image alone', () => {
    expect(fromMessages([user([image])]).text).toBe('[image-1]');
  });

  it('attaches the newest images of a long conversation and names those that are left out', () => {
    const many = Array.from({ length: limits.attachmentsMax }, () => image);
    const { preface, files } = fromMessages([user([image]), assistant('Nice'), user([...many])]);
    expect(preface).toContain('User: [image-1, no longer attached]');
    expect(files).toHaveLength(limits.attachmentsMax);
    expect(files[0]?.name).toBe('image-2');
    expect(() => fromMessages([user([...many, image])])).toThrow(refusal('messages', 'more than 10'));
  });

  it.each([
    ['nothing to answer', [user('Hi'), assistant('Hello!')], 'must end with a message of the user'],
    ['results of tool calls', [user('Hi'), assistant(null), { role: 'tool', content: '7', tool_call_id: 'c' }], 'their own tool calls'],
    ['instructions alone', [system('Be brief.')], 'must end with a message of the user'],
    ['an empty message', [user('')], 'not empty'],
    ['a message without content', [user(null)], 'not empty'],
    ['more than a message may have', [user('x'.repeat(limits.messageMaxCharacters + 1))], 'a new message of 32001 characters'],
  ])('refuses %s', (_name, messages, message) => {
    expect(() => fromMessages(messages)).toThrow(refusal('messages', message));
  });

  it('takes instructions and a history of any length', () => {
    const long = 'x'.repeat(10 * limits.messageMaxCharacters);
    const { preface, text } = fromMessages([system(long), user(long), assistant('y'), user('z')]);
    expect(preface?.length).toBeGreaterThan(2 * long.length);
    expect(text).toBe('z');
  });

  it('counts code points', () => {
    expect(fromMessages([user('😀'.repeat(limits.messageMaxCharacters))]).text).toHaveLength(2 * limits.messageMaxCharacters);
  });

  it.each([
    ['a file of the host', { type: 'image_url', image_url: { url: 'file:///etc/passwd' } }, 'messages.0.content.0.image_url.url'],
    ['a file without data', { type: 'file', file: { filename: 'a.pdf' } }, 'messages.0.content.0.file.file_data'],
  ])('refuses %s', (_name, given, path) => {
    expect(() => fromMessages([user([given])])).toThrow(refusal(path, ''));
  });

  it('refuses what only the caller of a model can answer', () => {
    const output = { type: 'function_call_output', call_id: 'c', output: '7' };
    expect(() => fromInput({ input: [{ role: 'user', content: 'x' }, output] })).toThrow(refusal('input.1.type', 'function_call_output'));
  });
});

const answer = { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content: [{ type: 'output_text', text: 'Hello!' }] };

function part(piece: string | object): object {
  return typeof piece === 'string' ? { type: 'text', text: piece } : piece;
}

function refusal(path: string, message: string): object {
  return expect.objectContaining({ code: 'invalid_request', errors: [{ path, message: expect.stringContaining(message) }] });
}
