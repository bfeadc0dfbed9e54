import { randomBytes } from 'node:crypto';
import { callTools, say, startScriptedModel, System, type ScriptedModel, type TenantKeys } from '@concierge/testing';
import type { TenantScope } from '@concierge/tenant';
import { z } from 'zod';

const ToolResult = z.object({ output: z.string(), isError: z.boolean() });
type ToolResult = z.infer<typeof ToolResult>;

/** A turn of the whole system: a message to an agent, and the calls that its model makes for it. */
export interface WebTurn {
  readonly agent: 'admin' | 'cs';
  readonly says?: string;
  readonly sender?: string;
  readonly calls: readonly (readonly [tool: 'web_fetch' | 'web_search' | 'memory_write', input: Readonly<Record<string, unknown>>])[];
}

/** The system as it ships, with a scripted model. */
export class WebTurns implements AsyncDisposable {
  readonly #system: System;
  readonly #model: ScriptedModel;
  readonly #keys: TenantKeys;

  private constructor(system: System, model: ScriptedModel, keys: TenantKeys) {
    this.#system = system;
    this.#model = model;
    this.#keys = keys;
  }

  static async start(env: Readonly<Record<string, string>>): Promise<WebTurns> {
    const model = await startScriptedModel();
    const system = await System.start({ modelUrl: model.url, env });
    return new WebTurns(system, model, await system.createTenant('acme'));
  }

  async scope(): Promise<TenantScope> {
    return this.#system.scope(this.#keys.tenantId);
  }

  /** What each call came to. */
  async run({ agent, says = '', sender, calls }: WebTurn): Promise<ToolResult[]> {
    const marker = randomBytes(8).toString('hex');
    this.#model.when(marker, ...calls.map(([name, input]) => [callTools([{ name, args: JSON.stringify(input) }])]), [say('done')]);
    const response = await fetch(`${this.#system.url}/api/${agent}`, {
      method: 'POST',
      headers: { 'x-api-key': this.#keys[agent], 'content-type': 'application/json' },
      body: JSON.stringify({ message: `${marker} ${says}`, ...(sender === undefined ? {} : { sender }) }),
    });
    const stream = await response.text();
    return [...stream.matchAll(/^event: tool_result\ndata: (.*)$/gmu)].map(([, data = '']) => ToolResult.parse(JSON.parse(data)));
  }

  /** Runs a turn with one call and returns the call's result. */
  async one(turn: WebTurn): Promise<ToolResult> {
    const [result, ...others] = await this.run(turn);
    if (result === undefined || others.length > 0) throw new Error(`the turn had ${String(others.length)} results more than one`);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#system[Symbol.asyncDispose]();
    await this.#model.close();
  }
}
