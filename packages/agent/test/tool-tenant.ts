import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allTools, TurnTools, toolScope, ToolRegistry, type ToolOutcome, type TurnCapabilities } from '@concierge/agent';
import { replyWindow, channelAdapters } from '@concierge/channel';
import type { AcceptedTurn } from '@concierge/contract';
import { openIndex, type IndexStore } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { Tenants, type TenantScope } from '@concierge/tenant';
import { unusedCapabilities } from '../src/fixtures/tool-fixture.ts';

const log = createLog({ service: 'test', level: 'silent' });
const signal = new AbortController().signal;
const admin = {
  agent: 'admin',
  authority: 'admin',
  channel: 'web',
  origin: 'api',
  sender: null,
  sessionId: '0'.repeat(32),
  turnId: 't1',
} as const;

export interface Box {
  /** Defects of tools; a good test has none. */
  readonly failures: unknown[];
  readonly call: (name: string, input?: Record<string, unknown>, id?: string) => Promise<ToolOutcome>;
}

/** A real tenant, and the tools of its turns. */
export class ToolTenant implements AsyncDisposable {
  readonly tenants: Tenants;
  readonly scope: TenantScope;
  readonly #index: IndexStore;
  readonly #folder: string;

  private constructor(made: {
    readonly tenants: Tenants;
    readonly scope: TenantScope;
    readonly index: IndexStore;
    readonly folder: string;
  }) {
    this.tenants = made.tenants;
    this.scope = made.scope;
    this.#index = made.index;
    this.#folder = made.folder;
  }

  static async create(): Promise<ToolTenant> {
    const folder = await mkdtemp(join(tmpdir(), 'concierge-tools-'));
    const index = await openIndex({ databaseUrl: undefined, dataDir: folder, log });
    const tenants = new Tenants({ dataDir: folder, index, keySecret: 'k'.repeat(40), secretsKey: 's'.repeat(40), log });
    return new ToolTenant({ tenants, scope: await tenants.create('acme'), index, folder });
  }

  /** Tools of a turn of the owner with every tool, unless `turn` changes that. */
  box(turn: Partial<AcceptedTurn> = {}, scope = this.scope, allow?: readonly string[]): Box {
    const status = (): never => {
      throw new Error('not part of this test');
    };
    const whole = { ...admin, acceptedAtMs: Date.now(), ...turn };
    const access = whole.agent === 'cs' ? 'cs' : whole.authority;
    const requestStaff: TurnCapabilities['requestStaff'] = async ({ sessionId, ...wish }) => scope.handoffs.request(sessionId, wish);
    const findReplyWindow: TurnCapabilities['findReplyWindow'] = (channel, to, heardMs) =>
      replyWindow(channelAdapters[channel].rulesFor({ to }), { lastInboundMs: heardMs, nowMs: Date.now() });
    const capabilities = { ...unusedCapabilities, requestStaff, findReplyWindow };
    const failures: unknown[] = [];
    const tools = new TurnTools({
      set: new ToolRegistry(allTools, access, allow),
      newContext: (made) => toolScope({ scope, turn: whole, access, allow, capabilities, status }, made),
      onFailure: (failure) => failures.push(failure),
    });
    return {
      failures,
      call: async (name, input = {}, id = 'c1') => tools.call({ id, name, arguments: JSON.stringify(input) }, signal),
    };
  }

  async connectTelegram(): Promise<void> {
    await this.scope.channels.connect('channel_c', { botToken: '12345:very-secret-token', secretToken: 'very-secret-hook' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#index.close();
    await rm(this.#folder, { recursive: true });
  }
}
