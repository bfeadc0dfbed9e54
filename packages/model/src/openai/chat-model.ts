import type { ModelUsage, ModelFacts } from '@concierge/contract';
import { estimateTokens } from '../estimate-tokens.ts';
import type { ModelEnd, ModelRequest } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import { fellSilent, timedOut, type CallFailure } from './call-failure.ts';
import { ChatRequests } from './chat-request.ts';
import { openEndpoint, type Endpoint, type HttpTransport, type StreamedBody } from './transport.ts';
import { applyTimeouts, type ModelLimits } from './attempts.ts';
import { openEventParser, Reply, type FinishedReply } from './reply.ts';

type AttemptEvent = { readonly type: 'text'; readonly delta: string } | ModelEnd;

/** One model of one provider. Each `attempt` is one HTTP request: no retry, no fallback. */
export class ChatModel {
  readonly facts: UsableModel;
  readonly #endpoint: Endpoint;
  readonly #requests: ChatRequests;
  readonly #transport: HttpTransport;
  readonly #limits: ModelLimits;

  constructor(model: UsableModel, options: { transport: HttpTransport; limits: ModelLimits }) {
    this.facts = model;
    this.#limits = applyTimeouts(options.limits, model.facts);
    this.#endpoint = openEndpoint(model.provider, '/chat/completions');
    this.#requests = new ChatRequests(model);
    this.#transport = options.transport;
  }

  /** Throws the signal's reason when it aborts, otherwise whatever `toCallFailure` understands. */
  async *attempt(request: ModelRequest, signal: AbortSignal): AsyncGenerator<AttemptEvent, void, undefined> {
    const deadline = new CallDeadline(signal, this.#limits);
    const reply = new Reply();
    let body: StreamedBody | undefined;
    try {
      body = await this.#transport.post(this.#endpoint, this.#requests.write(request), deadline.signal);
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

interface TokenCounts {
  /** All of the prompt, cached part included. */
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly outputTokens: number;
}

function countTokens(usage: NonNullable<FinishedReply['usage']>): TokenCounts {
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? 0;
  return {
    inputTokens: Math.round(usage.prompt_tokens),
    outputTokens: Math.round(usage.completion_tokens),
    cachedInputTokens: Math.min(Math.round(cached), Math.round(usage.prompt_tokens)),
  };
}

function estimateUsage(request: ModelRequest, reply: FinishedReply): TokenCounts {
  const prompt = [request.system, ...request.messages.map(listWords)].join('\n');
  const said = [reply.text, ...reply.toolCalls.map((call) => call.name + call.arguments)].join('\n');
  const tools = request.tools.length > 0 ? JSON.stringify(request.tools) : '';
  return { inputTokens: estimateTokens(prompt) + estimateTokens(tools), outputTokens: estimateTokens(said), cachedInputTokens: 0 };
}

function listWords(message: ModelRequest['messages'][number]): string {
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

/** US dollars of one call; null when the model has no price. Prices are per million tokens. */
export function costUsd(tokens: TokenCounts, price: ModelFacts['price']): number | null {
  if (price === undefined) return null;
  const fresh = Math.max(0, tokens.inputTokens - tokens.cachedInputTokens);
  const cached = tokens.cachedInputTokens * (price.cachedInput ?? price.input);
  return (fresh * price.input + cached + tokens.outputTokens * price.output) / 1_000_000;
}

/** calling → waiting (headers came) → speaking (text or a call began) → finished (finish reason seen). */
type CallPhase = 'calling' | 'waiting' | 'speaking' | 'finished';

/**
 * Ends one attempt when the caller aborts, when the provider falls silent for too long, or when it all takes too long.
 */
class CallDeadline {
  readonly #limits: ModelLimits;
  readonly #caller: AbortSignal;
  readonly #controller = new AbortController();
  /** For the request. */
  readonly signal = this.#controller.signal;
  /** The failure, when it was this deadline that ended the attempt. */
  expired: CallFailure | undefined;
  readonly #overall: NodeJS.Timeout;
  #silence: NodeJS.Timeout;
  #phase: CallPhase = 'calling';

  constructor(caller: AbortSignal, limits: ModelLimits) {
    this.#caller = caller;
    this.#limits = limits;
    this.#overall = setTimeout(() => this.#expire(timedOut(`no end after ${String(limits.attemptMs)} ms`)), limits.attemptMs);
    this.#silence = this.#watch();
    caller.addEventListener('abort', this.#abort, { once: true });
    if (caller.aborted) this.#abort();
  }

  /** The provider gave a sign of life. */
  heard(phase: CallPhase): void {
    if (phase === this.#phase) {
      this.#silence.refresh();
      return;
    }
    this.#phase = phase;
    clearTimeout(this.#silence);
    this.#silence = this.#watch();
  }

  /** Call it when the attempt is over. */
  clear(): void {
    clearTimeout(this.#silence);
    clearTimeout(this.#overall);
    this.#caller.removeEventListener('abort', this.#abort);
  }

  readonly #abort = (): void => this.#controller.abort(this.#caller.reason);

  #watch(): NodeJS.Timeout {
    const { headersMs, firstByteMs, idleMs, afterFinishMs } = this.#limits;
    const patienceMs = { calling: Math.min(headersMs, firstByteMs), waiting: firstByteMs, speaking: idleMs, finished: afterFinishMs };
    const silenceMs = patienceMs[this.#phase];
    return setTimeout(() => this.#expire(fellSilent(`nothing from the provider for ${String(silenceMs)} ms`)), silenceMs);
  }

  #expire(failure: CallFailure): void {
    this.expired = failure;
    this.#controller.abort(failure);
  }
}
