import { beforeEach, describe, expect, it } from '@jest/globals';
import { ChatCompletion, ResponseObject, type AcceptedTurn } from '@concierge/contract';
import OpenAI from 'openai';
import { setUpOnce } from '@concierge/testing/set-up';
import { collect, failure, hello, openAiClient, sayItBackTo, tenantWithAgents, withFile } from './openai-client.ts';
import { withoutComments } from './sse.ts';
import { TestGateway, type TestTenant } from './test-gateway.ts';

let gateway: TestGateway;
let tenant: TestTenant;
let accepted: AcceptedTurn[];

setUpOnce(async (stack) => {
  gateway = stack.use(await TestGateway.start());
});
beforeEach(async () => {
  accepted = [];
  gateway.script = sayItBackTo(accepted);
  tenant = await tenantWithAgents(gateway);
});

function client(key: string, maxRetries = 0): OpenAI {
  return openAiClient(gateway, key, maxRetries);
}

describe('models', () => {
  const names = async (key: string): Promise<string[]> => (await collect(client(key).models.list())).map(({ id }) => id);

  it('are the agents that the key may talk to', async () => {
    expect(await names(tenant.admin)).toEqual(['admin', 'cs', 'books', 'guide']);
    expect(await names(tenant.cs)).toEqual(['cs', 'guide']);
    expect(await names(tenant.read)).toEqual(['admin', 'cs', 'books', 'guide']);
  });

  it('can be asked for one by one', async () => {
    expect(await client(tenant.cs).models.retrieve('guide')).toMatchObject({ id: 'guide', object: 'model', owned_by: tenant.id });
    expect(await client(tenant.admin).models.retrieve('admin')).toMatchObject({ id: 'admin', owned_by: 'concierge', created: 0 });
    for (const name of ['nobody', 'admin', 'typo', 'No Name']) {
      const error = await failure(client(tenant.cs).models.retrieve(name));
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error).toMatchObject({ status: 404, code: 'model_not_found', param: 'model', type: 'invalid_request_error' });
    }
  });
});

describe('chat.completions', () => {
  it('answers with the whole reply', async () => {
    const { data, response } = await client(tenant.admin)
      .chat.completions.create({ model: 'admin', messages: [...hello] })
      .withResponse();
    expect(ChatCompletion.safeParse(data).success).toBe(true);
    expect(data.choices[0]).toMatchObject({ message: { role: 'assistant', content: 'hello there' }, finish_reason: 'stop' });
    expect(data.usage).toEqual({ prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 });
    const [turn] = accepted;
    expect(turn).toMatchObject({ agent: 'admin', authority: 'admin', channel: 'web', origin: 'api', sender: null, text: 'hello there' });
    expect(data.id).toBe(`chatcmpl-${turn?.turnId ?? ''}`);
    expect(response.headers.get('x-concierge-turn-id')).toBe(turn?.turnId);
    expect(response.headers.get('x-concierge-contact-id')).toBe(turn?.sessionId);
    expect(ChatCompletion.parse(data).conversation.id).toBe(turn?.sessionId);
  });

  it('streams it as chunks, with the usage where it is asked for', async () => {
    const stream = await client(tenant.admin).chat.completions.create({
      model: 'admin',
      messages: [...hello],
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await collect(stream);
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('hello there');
    expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual(['stop']);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 8 } });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
  });

  it('streams through the helper of the client too, which wants every field in its place', async () => {
    const completion = await client(tenant.admin)
      .chat.completions.stream({ model: 'admin', messages: [...hello] })
      .finalChatCompletion();
    expect(completion.choices[0]?.message.content).toBe('hello there');
  });

  it('is written as OpenAI writes it: data lines, [DONE] at the end', async () => {
    const body = { model: 'cs', messages: hello, stream: true };
    const response = await gateway.ask(tenant.cs, '/v1/chat/completions', { method: 'POST', body });
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    const text = withoutComments(await response.text());
    expect(text).toMatch(/^(?:data: \{.*\}\n\n)+data: \[DONE\]\n\n$/u);
    expect(text).not.toContain('"usage"');
  });

  it('does not show the agent’s own tool calls', async () => {
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'I look. ' } });
      writer.emit({ type: 'tool_call_start', data: { id: 'c1', name: 'read', input: {} } });
      writer.emit({ type: 'tool_call_end', data: { id: 'c1', name: 'read', durationMs: 1, isError: false } });
      writer.emit({ type: 'tool_result', data: { id: 'c1', name: 'read', output: 'of-the-tool', isError: false } });
      writer.emit({ type: 'text_delta', data: { delta: 'Open.' } });
      await writer.flush();
    };
    const { completions } = client(tenant.admin).chat;
    const whole = await completions.create({ model: 'admin', messages: [...hello] });
    const chunks = await collect(await completions.create({ model: 'admin', messages: [...hello], stream: true }));
    expect(whole.choices[0]?.message.content).toBe('I look. Open.');
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('I look. Open.');
    expect(JSON.stringify([whole, chunks])).not.toMatch(/of-the-tool|tool_calls/u);
  });

  it('marks void text in the stream, and leaves it out of the whole reply', async () => {
    gateway.script = async ({ writer }) => {
      writer.emit({ type: 'text_delta', data: { delta: 'At nine' } });
      await writer.flush();
      writer.emit({ type: 'text_reset', data: { reason: 'fallback_model' } });
      writer.emit({ type: 'text_delta', data: { delta: 'At ten' } });
      await writer.flush();
    };
    const { completions } = client(tenant.admin).chat;
    const chunks = await collect(await completions.create({ model: 'admin', messages: [...hello], stream: true }));
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toMatch(/^At nine\n\n\[.*void.*\]\n\nAt ten$/u);
    const whole = await completions.create({ model: 'admin', messages: [...hello] });
    expect(whole.choices[0]?.message.content).toBe('At ten');
  });

  it('ignores what changes nothing that is promised', async () => {
    const { choices } = await client(tenant.admin).chat.completions.create({
      model: 'admin',
      messages: [{ role: 'user', content: 'hi', name: 'ann' }],
      temperature: 0.1,
      top_p: 0.5,
      max_completion_tokens: 5,
      presence_penalty: 1,
      reasoning_effort: 'low',
      store: true,
      n: 1,
      tools: [],
      response_format: { type: 'text' },
      modalities: ['text'],
      stop: null,
    });
    expect(choices[0]?.message.content).toBe('hi');
  });

  const tool = { type: 'function', function: { name: 'f', parameters: {} } } as const;
  it.each([
    ['n', { n: 2 }],
    ['tools', { tools: [tool] }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['logprobs', { logprobs: true }],
    ['audio', { audio: { voice: 'alloy', format: 'wav' } }],
    ['modalities', { modalities: ['audio'] }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['stop', { stop: ['.'] }],
    ['stream', { stream: 'yes' }],
    ['conversation', { conversation: 'nope' }],
    ['metadata.contact_id', { metadata: { contact_id: 'nope' } }],
    ['metadata.order', { metadata: { order: 'x'.repeat(513) } }],
    ['metadata.contact_id', { metadata: { contact_id: '0'.repeat(32) }, conversation: { id: '1'.repeat(32) } }],
    ['user', { model: 'cs', user: 'x'.repeat(300) }],
    ['messages', { messages: [] }],
    ['messages', { messages: undefined }],
    ['messages[0].role', { messages: [{ role: 'wizard', content: 'x' }] }],
    ['messages[0].content', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }],
    [
      'messages[0].content[0].image_url.url',
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x/' } }] }] },
    ],
    ['messages[0].content[0].file.file_data', withFile({ file_data: '' })],
    ['messages[0].content[0].file.file_data', withFile({ file_data: 'data:text/plain,hello' })],
    ['messages[0].content[0].file.file_data', withFile({ file_id: `u_${'0'.repeat(32)}` })],
    ['messages', { messages: [{ role: 'user', content: 'x'.repeat(32_001) }] }],
  ])('refuses a wrong or unsupported %s by its name', async (param, fields) => {
    const body: Record<string, unknown> = { model: 'admin', messages: hello, ...fields };
    const error = await failure(client(tenant.admin).post('/chat/completions', { body }));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error', code: 'invalid_request', param });
    expect(accepted).toEqual([]);
  });

  it('lets a client offer tools that are not to be called', async () => {
    const { choices } = await client(tenant.admin).chat.completions.create({
      model: 'admin',
      messages: [...hello],
      tools: [tool],
      tool_choice: 'none',
    });
    expect(choices[0]?.message.content).toBe('hello there');
  });
});

describe('responses', () => {
  it('answers with the whole reply', async () => {
    const response = await client(tenant.cs).responses.create({ model: 'cs', input: 'hello there', metadata: { order: '7' } });
    expect(ResponseObject.safeParse(JSON.parse(JSON.stringify(response))).error).toBeUndefined();
    expect(response).toMatchObject({ status: 'completed', output_text: 'hello there', model: 'cs', metadata: { order: '7' }, error: null });
    expect(response.id).toBe(`resp_${accepted[0]?.turnId ?? ''}`);
    expect(response.conversation).toEqual({ id: accepted[0]?.sessionId });
    expect(response.usage).toMatchObject({ input_tokens: 3, output_tokens: 5, total_tokens: 8 });
  });

  it('streams events in order, each named as its data', async () => {
    const events = await collect(await client(tenant.cs).responses.create({ model: 'cs', input: 'hello there', stream: true }));
    expect(events.map(({ sequence_number: number }) => number)).toEqual([...events.keys()]);
    expect(events[0]?.type).toBe('response.created');
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [{ content: [{ text: 'hello there' }] }] } });
    const text = await (
      await gateway.ask(tenant.cs, '/v1/responses', { method: 'POST', body: { model: 'cs', input: 'x', stream: true } })
    ).text();
    expect(withoutComments(text)).toMatch(/^(?:event: (?<type>[\w.]+)\ndata: \{"type":"\k<type>",.*\}\n\n)+$/u);
  });

  it('streams through the helper of the client too, which wants every event in its place', async () => {
    const final = await client(tenant.cs).responses.stream({ model: 'cs', input: 'hello there' }).finalResponse();
    expect(final.output_text).toBe('hello there');
  });

  it('takes messages, instructions and what it answered itself', async () => {
    const first = await client(tenant.cs).responses.create({ model: 'cs', input: 'Hi' });
    await client(tenant.cs).responses.create({
      model: 'cs',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: first.output_text },
        { role: 'user', content: [{ type: 'input_text', text: 'Open?' }] },
      ],
    });
    expect(accepted[1]).toMatchObject({
      sessionId: accepted[0]?.sessionId,
      preface: '[Instructions of the application that asks]\nBe brief.',
      text: 'Open?',
    });
  });

  it.each([
    ['tools', { tools: [{ type: 'web_search' }] }],
    ['background', { background: true }],
    ['prompt', { prompt: { id: 'p' } }],
    ['text.format', { text: { format: { type: 'json_schema', name: 'x', schema: {} } } }],
    ['top_logprobs', { top_logprobs: 3 }],
    ['previous_response_id', { previous_response_id: 'resp_x', conversation: '0'.repeat(32) }],
    ['input', { input: [] }],
    ['input[0].type', { input: [{ type: 'function_call_output', call_id: 'c', output: '7' }] }],
    ['input', { input: [{ role: 'user' }] }],
  ])('refuses a wrong or unsupported %s by its name', async (param, fields) => {
    const body: Record<string, unknown> = { model: 'cs', input: 'x', ...fields };
    const error = await failure(client(tenant.cs).post('/responses', { body }));
    expect(error).toMatchObject({ status: 400, code: 'invalid_request', param });
    expect(accepted).toEqual([]);
  });
});
