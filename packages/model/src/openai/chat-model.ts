import type { ModelUsage } from '@concierge/contract';
import type { ModelEnd, ModelRequest } from '../model.ts';
import type { UsableModel } from '../providers.ts';
import { applyTimeouts, type ModelLimits } from './attempts.ts';
import { costUsd, countTokens, estimateUsage } from './call-usage.ts';
import { ChatRequests } from './chat-request.ts';
import { openEventParser, Reply, type FinishedReply } from './reply.ts';
import { CallDeadline, openEndpoint, type Endpoint, type HttpTransport, type StreamedBody } from './transport.ts';

type AttemptEvent = { readonly type: 'text'; readonly delta: string } | ModelEnd;

/** One model of one provider. Each `attempt` is one HTTP request: no retry, no fallback. */
export class ChatModel {
  readonly facts: UsableModel;
  readonly ownKey: boolean;
  readonly #endpoint: Endpoint;
  readonly #requests: ChatRequests;
  readonly #transport: HttpTransport;
  readonly #limits: ModelLimits;

  constructor(model: UsableModel, options: { transport: HttpTransport; limits: ModelLimits }) {
    this.facts = model;
    this.ownKey = model.provider.ownKey === true;
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
