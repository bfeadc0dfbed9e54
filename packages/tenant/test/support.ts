import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AcceptedTurn, Session, TurnRecord, UserMessage } from '@concierge/contract';
import { openIndex } from '@concierge/index';
import { createLog } from '@concierge/runtime';
import { eventually } from '@concierge/testing';
import { Tenants, type TenantsOptions } from '../src/tenants.ts';

export const silentLog = createLog({ service: 'test', level: 'silent' });
export const at = '2026-11-20T10:00:00.000Z';

export interface Folder extends AsyncDisposable {
  readonly path: string;
}

/** A folder that is gone at the end of its scope. */
export async function temporaryFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'concierge-tenant-'));
  return { path, [Symbol.asyncDispose]: async () => rm(path, { recursive: true, force: true, maxRetries: 5 }) };
}

export interface TestTenants extends AsyncDisposable {
  readonly tenants: Tenants;
  readonly dataDir: string;
  /** Another process' view of the same files. */
  another(options?: Pick<TenantsOptions, 'openMax' | 'tell'>): Promise<Tenants>;
}

export async function startTenants(keySecret = 'a secret for tests'): Promise<TestTenants> {
  const folder = await temporaryFolder();
  const indexes = new AsyncDisposableStack();
  const newTenants: TestTenants['another'] = async (options) => {
    const index = await openIndex({ databaseUrl: undefined, dataDir: folder.path, log: silentLog });
    indexes.defer(async () => index.close());
    return new Tenants({ dataDir: folder.path, index, keySecret, secretsKey: 'a key for secrets', log: silentLog, ...options });
  };
  return {
    tenants: await newTenants(),
    dataDir: folder.path,
    another: newTenants,
    [Symbol.asyncDispose]: async () => {
      await indexes.disposeAsync();
      await folder[Symbol.asyncDispose]();
    },
  };
}

export function newSessionId(): string {
  return randomBytes(16).toString('hex');
}

export function userMessage(id: string): UserMessage {
  return { id, turnId: `t-${id}`, at, role: 'user', text: `text of ${id}`, sent: `[now] text of ${id}` };
}

export function turnRecord(id: string, models: TurnRecord['models'] = []): TurnRecord {
  return {
    id,
    status: 'done',
    origin: 'api',
    acceptedAt: at,
    startedAt: at,
    firstTextAt: at,
    endedAt: at,
    attempts: 1,
    usage: { inputTokens: 1, outputTokens: 1 },
    models,
    finishReason: 'stop',
    error: null,
    steps: [],
    requestHash: 'h',
    keyId: null,
  };
}

export function newSession(id: string, changes: Partial<Session> = {}): Session {
  return {
    version: 1,
    id,
    agent: 'admin',
    channel: 'web',
    sender: null,
    origin: 'user',
    revision: 1,
    createdAt: at,
    updatedAt: at,
    title: 'A title',
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
    ...changes,
  };
}

export function acceptedTurn(turnId: string): AcceptedTurn {
  return {
    version: 1,
    turnId,
    tenantId: 'acme',
    sessionId: newSessionId(),
    acceptedAtMs: 1,
    origin: 'api',
    agent: 'admin',
    authority: 'admin',
    channel: 'web',
    sender: null,
    text: 'Hello',
    attachments: [],
    requestHash: 'h',
    keyId: null,
  };
}

/** Asks until the answer is yes. */
export async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  await eventually(check, { everyMs: 5 });
}
