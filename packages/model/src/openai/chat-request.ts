import { createHash } from 'node:crypto';
import type OpenAI from 'openai';
import type { ModelUsage } from '@concierge/contract';
import type { AssistantModelMessage, ModelMessage, ModelRequest, ModelTool, ModelEnd } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import { applyTimeouts, type ModelLimits } from './attempts.ts';
import { findDialect, sendThoughts, type Dialect } from './dialect.ts';
import { costUsd, countTokens, estimateUsage, openEventParser, Reply, type FinishedReply } from './reply.ts';
import { CallDeadline, openEndpoint, type Endpoint, type HttpTransport, type StreamedBody } from './transport.ts';

type Message = OpenAI.ChatCompletionMessageParam;
type UserPart = OpenAI.ChatCompletionContentPartText | OpenAI.ChatCompletionContentPartImage;

/** What all calls of one model with one list of tools have in common. */
type Parameters = Omit<OpenAI.ChatCompletionCreateParamsStreaming, 'messages'>;

/** System prompts that are kept as they were sent: more than the tenants have that are active at a time. */
const SYSTEM_PROMPTS_MAX_BYTES = 8 * 1024 * 1024;
const nothing = Buffer.alloc(0);

/**
 * Writes the bodies of the calls of one model. The same conversation gives the same bytes, so that prompt caches match.
 * What stays from call to call is written once: the parameters with the tools as long as they are the same list, the
 * system prompt as long as it has the same text, messages as long as the list begins with the same objects.
 */
export class ChatRequests {
  readonly #model: UsableModel;
  readonly #dialect: Dialect;
  readonly #heads = new WeakMap<readonly ModelTool[], Buffer>();
  /** By the first message. */
  readonly #conversations = new WeakMap<ModelMessage, WrittenMessages>();
  readonly #systems = new Map<string, Buffer>();
  #systemBytes = 0;

  constructor(model: UsableModel) {
    this.#model = model;
    this.#dialect = findDialect(model);
  }

  /** The parts of the body, which are sent one behind the other. */
  write({ system, messages, tools, conversationId }: ModelRequest): Buffer[] {
    const written = [this.#writeSystem(system), ...this.#writeMessages(messages)];
    const [first = nothing, ...others] = written.filter(({ length }) => length > 0);
    const isKeyed = this.#dialect.promptCacheKey && conversationId !== undefined;
    const end = isKeyed ? `],"prompt_cache_key":${JSON.stringify(conversationId)}}` : ']}';
    // Every message begins with the comma that divides it from the one before.
    return [this.#writeHead(tools), first.subarray(1), ...others, Buffer.from(end)];
  }

  #writeHead(tools: readonly ModelTool[]): Buffer {
    const known = this.#heads.get(tools);
    if (known !== undefined) return known;
    const { name, listed, facts } = this.#model;
    const parameters: Parameters = {
      model: name,
      // Defaults are guesses about a model without a description: an output limit above its own would be refused.
      ...(listed && { [this.#dialect.maxTokensField]: facts.maxOutputTokens }),
      ...(this.#dialect.streamOptions && { stream_options: { include_usage: true } }),
      stream: true,
      ...(tools.length > 0 && { tools: tools.map(toTool) }),
    };
    const head = Buffer.from(`${JSON.stringify(parameters).slice(0, -1)},"messages":[`);
    this.#heads.set(tools, head);
    return head;
  }

  #writeSystem(system: string): Buffer {
    if (system === '') return nothing;
    const known = this.#systems.get(system);
    if (known !== undefined) return known;
    const written = writeMessages([{ role: 'system', content: system.toWellFormed() }]);
    if (this.#systemBytes + written.length > SYSTEM_PROMPTS_MAX_BYTES) {
      this.#systems.clear();
      this.#systemBytes = 0;
    }
    this.#systems.set(system, written);
    this.#systemBytes += written.length;
    return written;
  }

  #writeMessages(messages: readonly ModelMessage[]): readonly Buffer[] {
    const [first] = messages;
    if (first === undefined) return [];
    const before = this.#conversations.get(first);
    const isContinued = before?.messages.every((message, index) => message === messages[index]) === true;
    const { messages: known, parts } = isContinued ? before : nothingWritten;
    if (isContinued && known.length === messages.length) return parts;
    const added = messages.slice(known.length).flatMap((message) => this.#toMessage(this.#withIds(message)));
    const written = { messages, parts: [...parts, writeMessages(added)] };
    this.#conversations.set(first, written);
    return written.parts;
  }

  #toMessage(message: ModelMessage): Message[] {
    const { ref, facts } = this.#model;
    switch (message.role) {
      case 'user':
        return [{ role: 'user', content: toUserContent(message.content, facts.images) }];
      case 'assistant':
        return toAssistantMessage(message, { ref, dialect: this.#dialect });
      case 'tool':
        return [{ role: 'tool', tool_call_id: message.callId, content: message.output.toWellFormed() }];
    }
  }

  #withIds(message: ModelMessage): ModelMessage {
    if (!this.#dialect.nineCharacterIds || message.role === 'user') return message;
    if (message.role === 'tool') return { ...message, callId: toNineCharacters(message.callId) };
    return { ...message, toolCalls: message.toolCalls.map((call) => ({ ...call, id: toNineCharacters(call.id) })) };
  }
}

/** A list of messages as it was sent; a call appends its own part. */
interface WrittenMessages {
  readonly messages: readonly ModelMessage[];
  readonly parts: readonly Buffer[];
}

const nothingWritten: WrittenMessages = { messages: [], parts: [] };

/** Each message with a comma before it. */
function writeMessages(messages: readonly Message[]): Buffer {
  if (messages.length === 0) return nothing;
  const list = Buffer.from(JSON.stringify(messages));
  list.write(',');
  return list.subarray(0, -1);
}

type UserContent = Extract<ModelMessage, { role: 'user' }>['content'];

// A lone surrogate is valid in JavaScript and in no provider's JSON: text is made well-formed on its way out.
function toUserContent(content: UserContent, images: boolean): string | UserPart[] {
  if (typeof content === 'string') return content.toWellFormed();
  return content.map((part): UserPart => {
    if (part.type === 'text') return { type: 'text', text: part.text.toWellFormed() };
    if (!images) return { type: 'text', text: '[An image was attached; this model cannot see images.]' };
    return { type: 'image_url', image_url: { url: `data:${part.mediaType};base64,${part.base64}` } };
  });
}

const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/**
 * The id of a tool call in nine letters and digits, as Mistral wants them: the id itself when it is such a one, else
 * made of its hash. The same id gives the same text, so that a call and its result stay a pair.
 */
function toNineCharacters(id: string): string {
  if (/^[A-Za-z0-9]{9}$/u.test(id)) return id;
  const bytes = createHash('sha256').update(id).digest().subarray(0, 9);
  return Array.from(bytes, (byte) => letters.charAt(byte % letters.length)).join('');
}

/** An assistant message without text and calls is refused by several providers and carries nothing: it is left out. */
function toAssistantMessage(message: AssistantModelMessage, to: { ref: string; dialect: Dialect }): Message[] {
  const { text, toolCalls } = message;
  if (toolCalls.length === 0) return text === '' ? [] : [{ role: 'assistant', content: text.toWellFormed() }];
  const calls = toolCalls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: toFunctionName(call.name), arguments: toArguments(call.arguments) },
  }));
  return [sendThoughts({ role: 'assistant', content: text === '' ? null : text.toWellFormed(), tool_calls: calls }, message, to)];
}

/**
 * Models invent names such as `functions.read`; sent back as they are, OpenAI refuses the whole conversation from then
 * on.
 */
function toFunctionName(name: string): string {
  return name.replaceAll(/[^\w-]/gu, '_').slice(0, 64) || '_';
}

/**
 * vLLM and others parse the arguments of past calls and refuse what is no object; the tool's result explains what was
 * wrong with them.
 */
function toArguments(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? text.toWellFormed() : '{}';
  } catch {
    return '{}';
  }
}

function toTool({ name, description, parameters }: ModelTool): OpenAI.ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description, parameters: { ...parameters } } };
}

type AttemptEvent = { readonly type: 'text'; readonly delta: string } | ModelEnd;

/** One model of one provider. Each `attempt` is one HTTP request: no retry, no fallback. */
export class ChatModel {
  readonly facts: UsableModel;
  readonly ownKey: boolean;
  readonly #endpoint: Endpoint;
  readonly #requests: ChatRequests;
  readonly #dialect: Dialect;
  readonly #transport: HttpTransport;
  readonly #limits: ModelLimits;

  constructor(model: UsableModel, options: { transport: HttpTransport; limits: ModelLimits }) {
    this.facts = model;
    this.ownKey = model.provider.ownKey === true;
    this.#limits = applyTimeouts(options.limits, model.facts);
    this.#endpoint = openEndpoint(model.provider, '/chat/completions');
    this.#requests = new ChatRequests(model);
    this.#dialect = findDialect(model);
    this.#transport = options.transport;
  }

  /** Throws the signal's reason when it aborts, otherwise whatever `toCallFailure` understands. */
  async *attempt(request: ModelRequest, signal: AbortSignal): AsyncGenerator<AttemptEvent, void, undefined> {
    const deadline = new CallDeadline(signal, this.#limits);
    const { reasoningField, signatureField } = this.#dialect;
    const reply = new Reply({ offersTools: request.tools.length > 0, reasoningField, signatureField });
    let body: StreamedBody | undefined;
    try {
      body = await this.#transport.post(withTraceparent(this.#endpoint, request), this.#requests.write(request), deadline.signal);
      deadline.heard('waiting');
      const events = openEventParser((data) => reply.add(data));
      // One loop in one generator: every layer between the socket and the caller costs a few microtasks per delta.
      for (let piece = await readPiece(body, reply); piece !== undefined; piece = await readPiece(body, reply)) {
        events.feed(piece);
        deadline.heard(reply.phase);
        const delta = reply.takeText();
        if (delta !== '') yield { type: 'text', delta };
        if (reply.isClosed) break;
      }
      // The last event may lack its blank line; what is torn after the finish reason is no loss.
      if (!reply.finished) events.feed('\n\n');
      const rest = reply.takeText();
      if (rest !== '') yield { type: 'text', delta: rest };
      signal.throwIfAborted();
      yield this.#buildEnd(reply.finish(), request);
    } catch (error) {
      signal.throwIfAborted();
      throw deadline.expired ?? error;
    } finally {
      deadline.clear();
      // Also when the caller leaves in the middle: an unread reply must not go on costing.
      if (reply.finished) body?.close();
      else body?.abandon();
    }
  }

  #buildEnd(reply: FinishedReply, request: ModelRequest): ModelEnd {
    const { ref, facts } = this.facts;
    const { usage, ...said } = reply;
    const tokens = usage === undefined ? estimateUsage(request, reply) : countTokens(usage);
    const modelUsage: ModelUsage = {
      ...tokens,
      model: ref,
      calls: 1,
      costUsd: costUsd(tokens, facts.price),
      ...(this.ownKey && { ownKey: true }),
    };
    return { type: 'end', ...said, usage: modelUsage, usageEstimated: usage === undefined, model: ref };
  }
}

/** A connection that breaks after the finish reason took at most the usage figures with it. */
async function readPiece(body: StreamedBody, reply: Reply): Promise<string | undefined> {
  try {
    return await body.read();
  } catch (error) {
    if (reply.finished) return undefined;
    throw error;
  }
}

function withTraceparent(endpoint: Endpoint, { traceparent }: Pick<ModelRequest, 'traceparent'>): Endpoint {
  return traceparent === undefined ? endpoint : { ...endpoint, headers: { ...endpoint.headers, traceparent } };
}
