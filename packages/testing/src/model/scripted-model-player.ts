import type { ServerResponse } from 'node:http';
import {
  CompletionStream,
  streamEnd,
  streamHeaders,
  wholeCompletion,
  type CompletionToolCall,
  type CompletionUsage,
} from '@concierge/model/demo';
import { splitText, type Script, type ScriptedAction } from './scripted-model-script.ts';

export interface PlayOptions {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** Reported unless the script sets another. */
  readonly promptTokens: number;
}

/**
 * Plays one script as one answer. What needs no waiting in between leaves in one write. Ends when the answer has been
 * sent, cut or given up by the client.
 */
export async function playScript(response: ServerResponse, script: Script, options: PlayOptions): Promise<void> {
  const pause = new Pause(response);
  const refusal = script.find((action) => action.do === 'status');
  if (refusal !== undefined) {
    for (const action of script) if (action.do === 'wait') await pause.of(action.ms);
    const isText = typeof refusal.body === 'string';
    response.writeHead(refusal.status, { 'content-type': isText ? 'text/plain' : 'application/json', ...refusal.headers });
    response.end(isText ? refusal.body : JSON.stringify(refusal.body));
    return;
  }
  await new ScriptPlayer(response, { ...options, pause }).play(script);
}

const COMMENT_EVERY_MS = 5000;

class ScriptPlayer {
  readonly #response: ServerResponse;
  readonly #options: PlayOptions;
  readonly #pause: Pause;
  readonly #stream: CompletionStream;
  readonly #calls: CompletionToolCall[] = [];
  #unsent = '';
  #text = '';
  #deltas = 0;
  #finishReason: string | undefined;
  #usage: CompletionUsage | null | undefined;

  constructor(response: ServerResponse, { pause, ...options }: PlayOptions & { readonly pause: Pause }) {
    this.#response = response;
    this.#pause = pause;
    this.#options = options;
    this.#stream = new CompletionStream(options.model);
  }

  async play(script: Script): Promise<void> {
    for (const action of script) {
      if (this.#response.destroyed) return;
      const over = await this.#act(action);
      if (over) return;
    }
    if (this.#options.stream) this.#endStream();
    else this.#endWhole();
  }

  /** True when nothing may follow. */
  async #act(action: ScriptedAction): Promise<boolean> {
    switch (action.do) {
      case 'say':
        await this.#say(action.text, action.options);
        return false;
      case 'call':
        this.#call(action.calls);
        return false;
      case 'wait':
        if (this.#unsent !== '') this.#flush();
        await this.#pause.of(action.ms);
        return false;
      case 'until':
        this.#flush();
        await this.#stayAlive(action.opened);
        return false;
      case 'raw':
        this.#unsent += action.text;
        return false;
      case 'usage':
        this.#usage = action.usage;
        return false;
      case 'finish':
        this.#finishReason = action.reason;
        return false;
      case 'hang':
        this.#flush();
        return true;
      case 'cut':
        await this.#cut();
        return true;
      case 'status':
        return true;
    }
  }

  async #say(text: string, { chunks = 1, delayMs = 0 }: { chunks?: number; delayMs?: number }): Promise<void> {
    this.#text += text;
    for (const piece of splitText(text, chunks)) {
      if (delayMs > 0 && this.#deltas > 0) {
        this.#flush();
        await this.#pause.of(delayMs);
        if (this.#response.destroyed) return;
      }
      this.#unsent += this.#stream.text(piece);
      this.#deltas += 1;
    }
  }

  #call(calls: readonly CompletionToolCall[]): void {
    for (const call of calls) {
      this.#unsent += this.#stream.toolCall(this.#calls.length, call);
      this.#calls.push(call);
    }
  }

  #flush(): void {
    if (!this.#response.headersSent) this.#response.writeHead(200, streamHeaders);
    if (this.#unsent === '') this.#response.flushHeaders();
    else this.#response.write(this.#unsent);
    this.#unsent = '';
  }

  /** Waits as long as it takes, with a comment now and then: no client takes this for silence. */
  async #stayAlive(opened: Promise<void>): Promise<void> {
    const comments = setInterval(() => this.#response.write(': waiting\n\n'), COMMENT_EVERY_MS);
    await this.#pause.until(opened);
    clearInterval(comments);
  }

  async #cut(): Promise<void> {
    this.#flush();
    const { promise, resolve } = Promise.withResolvers<void>();
    // Cut after the writes: the client must see the beginning.
    this.#response.write(': cut\n\n', () => resolve());
    await promise;
    this.#response.destroy();
  }

  #endStream(): void {
    this.#unsent += this.#stream.finish(this.#reason());
    if (this.#usage !== null && this.#options.includeUsage) this.#unsent += this.#stream.usage(this.#figures());
    this.#unsent += streamEnd;
    if (!this.#response.headersSent) this.#response.writeHead(200, streamHeaders);
    this.#response.end(this.#unsent);
  }

  #endWhole(): void {
    const { model } = this.#options;
    const body = { model, text: this.#text, toolCalls: this.#calls, finishReason: this.#reason(), usage: this.#figures() };
    this.#response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeCompletion(body)));
  }

  #reason(): string {
    return this.#finishReason ?? (this.#calls.length > 0 ? 'tool_calls' : 'stop');
  }

  #figures(): CompletionUsage {
    return this.#usage ?? { promptTokens: this.#options.promptTokens, completionTokens: Math.max(1, this.#deltas + this.#calls.length) };
  }
}

/** Waits that end when the client goes. */
class Pause {
  readonly #response: ServerResponse;
  #timer: NodeJS.Timeout | undefined;
  #resume: (() => void) | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once('close', () => {
      clearTimeout(this.#timer);
      this.#resume?.();
    });
  }

  async of(ms: number): Promise<void> {
    if (this.#response.destroyed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resume = resolve;
    this.#timer = setTimeout(resolve, ms);
    await promise;
  }

  async until(opened: Promise<void>): Promise<void> {
    if (this.#response.destroyed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resume = resolve;
    await Promise.race([opened, promise]);
  }
}
