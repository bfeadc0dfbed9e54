import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { TurnView, type TurnEvent, type TurnInput, type TurnStepView } from '@concierge/contract';
import { openTurnPath } from '@concierge/core';
import { openRedis } from '@concierge/runtime';
import {
  callTools,
  say,
  silentLog,
  startScriptedSystem,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedSystem,
  type System,
  type TenantKeys,
} from '@concierge/testing';
import type { TenantScope } from '@concierge/tenant';
import type { Turns } from '@concierge/turn';

export interface StreamedEvent {
  readonly type: TurnEvent['type'];
  readonly data: Readonly<Record<string, unknown>>;
}

/** What a turn's one tool call came to. */
export interface CallOutcome {
  readonly output: string;
  readonly isError: boolean;
}

/** The agent, and with what and from whom where that matters. */
type Addressed = Agent | { readonly agent: Agent; readonly says?: string; readonly sender?: string };
type Agent = 'admin' | 'cs';

const ToolResult = z.object({ output: z.string(), isError: z.boolean() });
const Session = z.looseObject({ turnId: z.string(), contact_id: z.string() });

/** The whole system with a scripted model: a turn goes in over HTTP, and what it does is done for real. */
export class TestSystem implements AsyncDisposable {
  readonly system: System;
  readonly model: ScriptedModel;
  readonly #stack: AsyncDisposableStack;

  private constructor({ system, model }: ScriptedSystem, stack: AsyncDisposableStack) {
    this.system = system;
    this.model = model;
    this.#stack = stack;
  }

  static async start(options: Parameters<typeof startScriptedSystem>[1] = {}): Promise<TestSystem> {
    await using opened = new AsyncDisposableStack();
    const parts = await startScriptedSystem(opened, options);
    return new TestSystem(parts, opened.move());
  }

  /** A tenant of a test's own, so that tests do not meet. */
  async tenant(): Promise<Tenant> {
    const keys = await this.system.createTenant(`t-${randomBytes(6).toString('hex')}`);
    return new Tenant(this, keys, await this.system.scope(keys.tenantId));
  }

  /** Accepts turns in this process, as a gateway does. */
  async openTurns(): Promise<Turns> {
    const redis = await openRedis({ url: this.system.redis.url, role: 'producer', log: silentLog }, this.#stack);
    return openTurnPath(redis, this.#stack, { dataDir: this.system.dataDir, log: silentLog }).turns;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** What a contact writes on Telegram, as its webhook accepts it. */
export function contactWrites(sender: string, text: string, facts: Partial<TurnInput> = {}): TurnInput {
  return {
    origin: 'webhook',
    agent: 'cs',
    authority: 'cs',
    channel: 'channel_c',
    sender,
    contactId: null,
    text,
    attachments: [],
    busy: 'queue',
    dedupeId: `${sender}:${text}`,
    requestHash: text,
    keyId: null,
    channelMessage: { address: { to: sender, thread: null }, isGroup: false, messageRef: `${sender}/7`, media: [], replyTo: null },
    ...facts,
  };
}

export class Tenant {
  readonly keys: TenantKeys;
  readonly scope: TenantScope;
  readonly #whole: TestSystem;

  constructor(whole: TestSystem, keys: TenantKeys, scope: TenantScope) {
    this.#whole = whole;
    this.keys = keys;
    this.scope = scope;
  }

  /** Of the gateway that serves it. */
  get url(): string {
    return this.#whole.system.url;
  }

  /** A turn whose model makes these calls, one after another, and then answers "done". */
  async begin(to: Addressed, ...calls: readonly ScriptedCall[]): Promise<StartedTurn> {
    const { agent, says, sender } = typeof to === 'string' ? { agent: to } : to;
    const marker = randomBytes(8).toString('hex');
    this.#whole.system.logSearch.plant('the text of a message', marker);
    this.#whole.model.when(marker, ...calls.map((call) => [callTools([call])]), [say('done')]);
    return this.ask(agent, says === undefined ? marker : `${marker} ${says}`, sender);
  }

  /** A turn whose replies the test has scripted. */
  async ask(agent: Agent, message: string, sender?: string): Promise<StartedTurn> {
    const response = await this.#fetch(agent, `/api/${agent}`, { method: 'POST', body: JSON.stringify({ message, sender }) });
    if (response.status !== 200) throw new Error(await response.text());
    return new StartedTurn(response, async (path, method) => this.#fetch('admin', path, { method }));
  }

  /** What the last of the calls came to. */
  async call(to: Addressed, ...calls: readonly ScriptedCall[]): Promise<CallOutcome> {
    const outcomes = await this.calls(to, ...calls);
    const last = outcomes.at(-1);
    if (last === undefined) throw new Error('no call was made');
    return last;
  }

  async calls(to: Addressed, ...calls: readonly ScriptedCall[]): Promise<CallOutcome[]> {
    const turn = await this.begin(to, ...calls);
    return readOutcomes(await turn.events());
  }

  async bash(command: string, more: Readonly<Record<string, unknown>> = {}): Promise<CallOutcome> {
    return await this.call('admin', bash(command, more));
  }

  /** As the owner does it: PATCH /api/tenant. */
  async changeSettings(patch: Readonly<Record<string, unknown>>): Promise<void> {
    const response = await this.#fetch('admin', '/api/tenant', { method: 'PATCH', body: JSON.stringify(patch) });
    if (response.status !== 200) throw new Error(await response.text());
  }

  async #fetch(key: 'admin' | 'cs', path: string, init: RequestInit): Promise<Response> {
    const headers = { 'x-api-key': this.keys[key], 'content-type': 'application/json' };
    return await fetch(`${this.#whole.system.url}${path}`, { ...init, headers });
  }
}

export function bash(command: string, more: Readonly<Record<string, unknown>> = {}): ScriptedCall {
  return { name: 'bash', args: JSON.stringify({ command, ...more }) };
}

export function tool(name: string, input: unknown = {}): ScriptedCall {
  return { name, args: JSON.stringify(input) };
}

export function readOutcomes(events: readonly StreamedEvent[]): CallOutcome[] {
  return events.filter(({ type }) => type === 'tool_result').map(({ data }) => ToolResult.parse(data));
}

/** One turn, followed by its stream. */
export class StartedTurn {
  readonly #events: StreamedEvent[] = [];
  readonly #reader: AsyncIterator<StreamedEvent>;
  readonly #ask: (path: string, method: string) => Promise<Response>;

  constructor(response: Response, ask: (path: string, method: string) => Promise<Response>) {
    this.#reader = readEvents(response)[Symbol.asyncIterator]();
    this.#ask = ask;
  }

  /** Up to the first event that fits, that one included. */
  async until(fits: (event: StreamedEvent) => boolean): Promise<StreamedEvent> {
    for (let next = await this.#reader.next(); next.done !== true; next = await this.#reader.next()) {
      this.#events.push(next.value);
      if (fits(next.value)) return next.value;
    }
    throw new Error(`the stream ended with ${JSON.stringify(this.#events.at(-1))}`);
  }

  /** The whole stream, once it has ended. */
  async events(): Promise<readonly StreamedEvent[]> {
    await this.until(({ type }) => type === 'done' || type === 'error');
    return this.#events;
  }

  async id(): Promise<string> {
    return (await this.#session()).turnId;
  }

  async sessionId(): Promise<string> {
    return (await this.#session()).contact_id;
  }

  async cancel(): Promise<void> {
    await this.#ask(`/api/turns/${await this.id()}/cancel`, 'POST');
  }

  async steps(): Promise<readonly TurnStepView[]> {
    const response = await this.#ask(`/api/turns/${await this.id()}`, 'GET');
    return TurnView.parse(await response.json()).steps ?? [];
  }

  async #session(): Promise<z.infer<typeof Session>> {
    if (this.#events.length === 0) await this.until(({ type }) => type === 'session');
    return Session.parse(this.#events[0]?.data);
  }
}

/** As the service writes them: `event`, one line of `data`, `id`, blank line. */
async function* readEvents(response: Response): AsyncGenerator<StreamedEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const [, type, data] = /^event: (\w+)\ndata: (.*)\nid: /u.exec(block) ?? [];
      if (type === undefined || data === undefined) continue;
      // eslint-disable-next-line typescript/no-unsafe-type-assertion -- what it holds is parsed where it is looked at
      yield { type: type as TurnEvent['type'], data: JSON.parse(data) };
    }
  }
}
