import type { ModelUsage } from '@concierge/contract';
import type OpenAI from 'openai';
import { costUsd } from '../cost.ts';
import { estimateTokens } from '../estimate-tokens.ts';
import type { ModelEnd, ModelRequest } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import { CallDeadline } from './call-deadline.ts';
import { brokenStream } from './call-failure.ts';
import { chatRequest } from './chat-request.ts';
import { openClient } from './client.ts';
import { limitsOf, type ModelLimits } from './limits.ts';
import { openEventParser, Reply, type FinishedReply } from './reply.ts';
import { StreamedResponse, type HttpTransport } from './transport.ts';
import type { StreamedBody } from './streamed-body.ts';

type AttemptEvent = { readonly type: 'text'; readonly delta: string } | ModelEnd;

/** One model of one provider. Each `attempt` is one HTTP request: no retry, no fallback. */
export class ChatModel {
  readonly facts: UsableModel;
  readonly #client: OpenAI;
  readonly #limits: ModelLimits;

  constructor(model: UsableModel, options: { transport: HttpTransport; limits: ModelLimits }) {
    const { apiKey, baseUrl } = model.provider;
    this.facts = model;
    this.#limits = limitsOf(options.limits, model.facts);
    this.#client = openClient({ baseUrl, apiKey, ...options });
  }

  /** Throws the signal's reason when it aborts, otherwise whatever `toCallFailure` understands. */
  async *attempt(request: ModelRequest, signal: AbortSignal): AsyncGenerator<AttemptEvent, void, undefined> {
    const deadline = new CallDeadline(signal, this.#limits);
    const reply = new Reply();
    let body: StreamedBody | undefined;
    try {
      body = await this.#open(request, deadline);
      deadline.heard('waiting');
      const events = openEventParser((data) => reply.add(data));
      // One loop in one generator: every layer between the socket and the caller costs a few microtasks per delta.
      for (let piece = await readPiece(body, reply); piece !== undefined; piece = await readPiece(body, reply)) {
        events.feed(piece);
        deadline.heard(phaseOf(reply));
        const delta = reply.takeText();
        if (delta !== '') yield { type: 'text', delta };
        if (reply.closed) break;
      }
      // The last event may lack its blank line; what is torn after the finish reason is no loss.
      if (!reply.finished) events.feed('\n\n');
      const rest = reply.takeText();
      if (rest !== '') yield { type: 'text', delta: rest };
      signal.throwIfAborted();
      yield this.#endOf(reply.finish(), request);
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

  /**
   * The library builds and sends the request and reads refusals; the stream is read by us: its own decoder yields the
   * deltas of one piece one by one, takes an abort for an ordinary end and gives the connection up (see the README of
   * this package).
   */
  async #open(request: ModelRequest, deadline: CallDeadline): Promise<StreamedBody> {
    const response = await this.#client.chat.completions.create(chatRequest(this.facts, request), { signal: deadline.signal }).asResponse();
    if (!(response instanceof StreamedResponse)) throw brokenStream('the answer is no stream');
    return response.stream;
  }

  #endOf(reply: FinishedReply, request: ModelRequest): ModelEnd {
    const { ref, facts } = this.facts;
    const { usage, ...said } = reply;
    const tokens = usage === undefined ? estimateUsage(request, reply) : countsOf(usage);
    const modelUsage: ModelUsage = { ...tokens, model: ref, calls: 1, costUsd: costUsd(tokens, facts.price) };
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

function phaseOf(reply: Reply): 'waiting' | 'speaking' | 'finished' {
  if (reply.finished) return 'finished';
  return reply.started ? 'speaking' : 'waiting';
}

type TokenCounts = Pick<ModelUsage, 'inputTokens' | 'outputTokens' | 'cachedInputTokens'>;

function countsOf(usage: NonNullable<FinishedReply['usage']>): TokenCounts {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0;
  return {
    inputTokens: Math.round(usage.prompt_tokens),
    outputTokens: Math.round(usage.completion_tokens),
    cachedInputTokens: Math.min(Math.round(cached), Math.round(usage.prompt_tokens)),
  };
}

function estimateUsage(request: ModelRequest, reply: FinishedReply): TokenCounts {
  const prompt = [request.system, ...request.messages.map(wordsOf)].join('\n');
  const said = [reply.text, ...reply.toolCalls.map((call) => call.name + call.arguments)].join('\n');
  const tools = request.tools.length > 0 ? JSON.stringify(request.tools) : '';
  return { inputTokens: estimateTokens(prompt) + estimateTokens(tools), outputTokens: estimateTokens(said), cachedInputTokens: 0 };
}

function wordsOf(message: ModelRequest['messages'][number]): string {
  switch (message.role) {
    case 'user':
      return typeof message.content === 'string'
        ? message.content
        : message.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
    case 'assistant':
      return [message.text, ...message.toolCalls.map((call) => call.name + call.arguments)].join('\n');
    case 'tool':
      return message.output;
  }
}
