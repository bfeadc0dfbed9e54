import { join } from 'node:path';
import { allTools, ToolBox, toolScope, ToolSet, type ToolOutcome, type TurnStatus } from '@concierge/agent';
import type { AcceptedTurn } from '@concierge/contract';
import { createLog } from '@concierge/runtime';
import { openIndex, Tenants, type TenantScope } from '@concierge/tenant';
import { temporaryDirectory } from '@concierge/testing';
import { unusedCapabilities } from '../src/fixtures/tool-fixture.ts';

const log = createLog({ service: 'test', level: 'silent' });
const signal = new AbortController().signal;

const status = (): TurnStatus => ({
  agent: 'admin',
  channel: 'web',
  sessionId: '0'.repeat(32),
  time: 'now',
  model: 'test/model',
  contextTokens: 500,
  contextWindow: 1000,
  messages: 3,
  compacted: false,
  turn: { modelCalls: 1, maxTurns: 20, inputTokens: 10, outputTokens: 2 },
});

export interface StagedBox {
  /** What was reported as a defect or an outage. */
  readonly failures: unknown[];
  call(name: string, input?: Record<string, unknown>): Promise<ToolOutcome>;
}

/** The tenant `acme`, on disk, beside another one, and its agents' tools over it. */
export interface ToolStage extends AsyncDisposable {
  readonly scope: TenantScope;
  readonly other: TenantScope;
  /** The tenant's folder. */
  readonly root: string;
  /** The folder of all tenants' data. */
  readonly dataDir: string;
  box(turn?: Partial<AcceptedTurn>): StagedBox;
}

export async function startToolStage(): Promise<ToolStage> {
  const directory = await temporaryDirectory();
  const index = await openIndex({ databaseUrl: undefined, dataDir: directory.path, log });
  const tenants = new Tenants({ dataDir: directory.path, index, keySecret: 'k'.repeat(40), log });
  const scope = await tenants.create('acme');
  const other = await tenants.create('other');
  return {
    scope,
    other,
    root: join(directory.path, 'tenants', 'acme'),
    dataDir: directory.path,
    box: (turn = {}) => boxOf(scope, turn),
    [Symbol.asyncDispose]: async () => {
      await index.close();
      await directory[Symbol.asyncDispose]();
    },
  };
}

function boxOf(scope: TenantScope, turn: Partial<AcceptedTurn>): StagedBox {
  const whole = { agent: 'admin', authority: 'admin', sender: null, sessionId: '0'.repeat(32), turnId: 't1', ...turn } as const;
  const context = toolScope({ scope, turn: whole, capabilities: unusedCapabilities, status });
  const failures: unknown[] = [];
  const tools = new ToolBox({ set: new ToolSet(allTools, context.access), context, onFailure: (failure) => failures.push(failure) });
  return {
    failures,
    call: async (name, input = {}) => tools.call({ id: '1', name, arguments: JSON.stringify(input) }, signal),
  };
}
