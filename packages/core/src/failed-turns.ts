import { hash } from 'node:crypto';
import {
  AppError,
  FAILURE_MESSAGE_MAX,
  HOUR_MS,
  truncate,
  type CancelledTurns,
  type CancelTurnsBody,
  type FailureGroup,
  type RetrySkip,
  type Session,
  type TurnInput,
  type TurnRecord,
  type TurnRetryBody,
  type TurnsRetried,
  sumFailures,
  sumTenantTurns,
  type TenantTurns,
  type TurnView,
} from '@concierge/contract';
import type { IndexedTurn } from '@concierge/index';
import type { TenantScope, Tenants } from '@concierge/tenant';
import type { TurnReceipt, Turns } from '@concierge/turn';
import type { Asked, TenantOperations } from './tenant-operations.ts';
import { walkTenants } from './tenant-walk.ts';

const SINCE_DEFAULT_MS = 24 * HOUR_MS;
/** What one page reads at most. */
const FAILURES_PER_PAGE = 1000;
/** To find out whether a turn was tried again already costs as much as to look at it. */
const LOOKED_AT_PER_RETRY = 100;
/** Records that one query reads: the process serves others in between. */
const RECORDS_AT_ONCE = 100;

/** Which failed turns are meant; times as in ISO 8601. */
export interface FailureFilter {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly tenant?: string | undefined;
  readonly code?: string | undefined;
  /** Of a turn or of a conversation. */
  readonly id?: string | undefined;
}

export interface FailedTurnsOptions {
  readonly tenants: Pick<Tenants, 'list' | 'find'>;
  readonly turns: () => Promise<Turns>;
  readonly operations: Pick<TenantOperations, 'open' | 'record'>;
}

export interface CancelledTurn {
  readonly tenantId: string;
  readonly turnId: string;
  /** Why, which goes on record. */
  readonly reason?: string | undefined;
}

interface Failed {
  readonly scope: TenantScope;
  readonly turn: IndexedTurn;
}

interface Walk {
  readonly filter: FailureFilter;
  readonly cursor: string | undefined;
  /** Turns of one page, and after how many no other page is read. */
  readonly atOnce: number;
  readonly atMost: number;
}

interface FailedPage {
  readonly failed: readonly Failed[];
  readonly next: string | null;
}

/** Failed turns of all tenants, for the command line and the operators' API alike. */
export class FailedTurns {
  readonly #options: FailedTurnsOptions;

  constructor(options: FailedTurnsOptions) {
    this.#options = options;
  }

  /** One page by cause, the most frequent first. @throws AppError not_found, invalid_request */
  async list(filter: FailureFilter, cursor?: string): Promise<{ readonly groups: FailureGroup[]; readonly nextCursor: string | null }> {
    let groups: FailureGroup[] = [];
    let nextCursor: string | null = null;
    for await (const { failed, next } of this.#walk({ filter, cursor, atOnce: RECORDS_AT_ONCE, atMost: FAILURES_PER_PAGE })) {
      groups = sumFailures([...groups, ...failed.map(toGroup)]);
      nextCursor = next;
    }
    return { groups, nextCursor };
  }

  /**
   * Accepts a few turns once more; a dry run only counts. Each is accepted again once, however often it is asked for.
   * @throws AppError not_found, invalid_request, overloaded
   */
  async retry({ dryRun, limit, cursor, ...filter }: TurnRetryBody, asked?: Asked): Promise<TurnsRetried> {
    const turns = await this.#options.turns();
    const retried: TurnsRetried['retried'] = [];
    const counted: TenantTurns[] = [];
    const skipped = new Map<RetrySkip, number>();
    let nextCursor: string | null = null;
    // Pages of `limit` turns: none is looked at that a whole page of retries leaves behind.
    for await (const { failed, next } of this.#walk({ filter, cursor, atOnce: limit, atMost: LOOKED_AT_PER_RETRY })) {
      nextCursor = next;
      for (const one of failed) {
        const { tenantId } = one.scope;
        const skip = await findSkip(turns, one, filter.code);
        const outcome = skip ?? (dryRun ? undefined : await this.#retryFailed(turns, one, asked));
        if (typeof outcome === 'string') skipped.set(outcome, (skipped.get(outcome) ?? 0) + 1);
        else counted.push({ tenantId, turns: 1 });
        if (typeof outcome === 'object') retried.push({ tenantId, turnId: outcome.turnId, retryOf: one.turn.record.id });
      }
      if (retried.length > 0) break;
    }
    return {
      dryRun,
      turns: counted.length,
      tenants: sumTenantTurns(counted),
      retried,
      skipped: Array.from(skipped, ([reason, count]) => ({ reason, turns: count })),
      nextCursor,
    };
  }

  /** As the tenant's own retry. @throws what retryAsked throws */
  async retryOne({ tenantId, turnId }: { readonly tenantId: string; readonly turnId: string }, asked?: Asked): Promise<TurnView> {
    const { operations } = this.#options;
    const scope = await operations.open(tenantId);
    const { turn, isReplayed } = await retryAsked({ scope, turns: await this.#options.turns() }, turnId);
    if (!isReplayed) await operations.record('turn.retry', { scope, target: turnId, ...(asked !== undefined && { asked }) });
    return turn;
  }

  /** As the tenant's own cancel. @throws AppError not_found */
  async cancel({ tenantId, turnId, reason }: CancelledTurn, asked?: Asked): Promise<TurnView> {
    const { operations } = this.#options;
    const scope = await operations.open(tenantId);
    const turn = await (await this.#options.turns()).cancel(scope, turnId);
    const why = reason === undefined ? {} : { reason };
    await operations.record('turn.cancel', { scope, target: turnId, ...(asked !== undefined && { asked }), ...why });
    return turn;
  }

  /** All that wait or run of one tenant, or how many these are. @throws AppError not_found, overloaded */
  async cancelAll({ tenant, dryRun, reason }: CancelTurnsBody, asked?: Asked): Promise<CancelledTurns> {
    const { operations } = this.#options;
    const scope = await operations.open(tenant);
    const facts = { scope, ...(asked !== undefined && { asked }), ...(reason !== undefined && { reason }) };
    // On record before the first turn is cancelled: a process that is killed in between records nothing afterwards.
    const onBegin = async (): Promise<void> => operations.record('turn.cancel-all-begin', facts);
    const { failure, isBegun, ...count } = await (await this.#options.turns()).cancelAll(scope, { dryRun, onBegin });
    const turns = count.waiting + count.running;
    // Of none, too, when all ended by themselves meanwhile: a begin without it is of a process that was killed.
    if (isBegun) await operations.record('turn.cancel-all', { ...facts, turns });
    // What was done goes on record first, as `retry` records each turn before it goes on to the next.
    if (failure !== undefined) throw failure;
    return { tenantId: tenant, dryRun, ...count };
  }

  async #retryFailed(turns: Turns, { scope, turn }: Failed, asked: Asked | undefined): Promise<TurnReceipt | RetrySkip> {
    const turnId = turn.record.id;
    try {
      const receipt = await retryTurn({ scope, turns }, turnId);
      if (receipt.replayed) return 'retried';
      await this.#options.operations.record('turn.retry', { scope, target: turnId, ...(asked !== undefined && { asked }) });
      return receipt;
    } catch (error) {
      // What is overloaded for one is so for all: the caller comes back later.
      if (!(error instanceof AppError) || error.code === 'overloaded') throw error;
      return error.code === 'not_found' ? 'gone' : 'refused';
    }
  }

  /** Page by page, of each tenant the last accepted first. `next`: where to go on after this page. */
  async *#walk({ filter, cursor, atOnce, atMost }: Walk): AsyncGenerator<FailedPage, void, undefined> {
    const period = readPeriod(filter);
    const steps = walkTenants<IndexedTurn>(this.#options, {
      tenant: filter.tenant,
      cursor,
      read: async (scope, place) => scope.index.listFailedTurns({ ...period, limit: atOnce, cursor: place }),
    });
    let read = 0;
    for await (const { scope, items, next } of steps) {
      const meant = items.filter((turn) => isMeant(turn, filter));
      read += items.length;
      yield { failed: scope === undefined ? [] : meant.map((turn) => ({ scope, turn })), next };
      if (read >= atMost) return;
    }
  }
}

function readPeriod({ since, until }: FailureFilter): { readonly fromMs: number; readonly toMs: number } {
  const nowMs = Date.now();
  return {
    fromMs: since === undefined ? nowMs - SINCE_DEFAULT_MS : Date.parse(since),
    toMs: until === undefined ? nowMs : Date.parse(until),
  };
}

function isMeant({ record, sessionId }: IndexedTurn, { code, id }: FailureFilter): boolean {
  return (code === undefined || record.error?.code === code) && (id === undefined || record.id === id || sessionId === id);
}

/** Why it is not tried again; undefined when it may be. */
async function findSkip(turns: Turns, { scope, turn: { record } }: Failed, code: string | undefined): Promise<RetrySkip | undefined> {
  if (record.origin !== 'api') return 'not_asked';
  if (record.joinedTo !== undefined) return 'collected';
  if (record.error?.code === 'turn_crashed' && code !== 'turn_crashed') return 'crashed';
  if ((await scope.settings()).suspended === true) return 'suspended';
  return (await turns.findAccepted(scope, toDedupeId(record.id))) === undefined ? undefined : 'retried';
}

function toGroup({ scope: { tenantId }, turn: { sessionId, agent, record } }: Failed): FailureGroup {
  const model = record.failedModel ?? null;
  return {
    code: record.error?.code ?? 'internal_error',
    provider: model?.split('/', 1)[0] ?? null,
    model,
    message: truncate(record.error?.message ?? '', FAILURE_MESSAGE_MAX),
    turns: 1,
    tenants: [{ tenantId, turns: 1 }],
    firstAt: record.endedAt,
    lastAt: record.endedAt,
    example: { tenantId, turnId: record.id, contact_id: sessionId, agent },
  };
}

function toDedupeId(turnId: string): string {
  return `retry:${turnId}`;
}

/**
 * Accepts once more, in the same session, what an ended turn had asked. Its rights are those of its agent, never more
 * than the first time; its id follows from the first one's, so that a second retry attaches to the first.
 * @throws AppError not_found, conflict (it has not failed), and what Turns.accept throws
 */
async function retryTurn({ scope, turns }: { readonly scope: TenantScope; readonly turns: Turns }, turnId: string): Promise<TurnReceipt> {
  const turn = await turns.find(scope, turnId);
  if (turn === undefined) throw new AppError('not_found', `${scope.tenantId} has no turn ${turnId}.`);
  if (turn.status !== 'failed' && turn.status !== 'cancelled')
    throw new AppError('conflict', `${turnId} is ${turn.status}: only a failed or cancelled turn is tried again.`);
  const session = await scope.sessions.load(turn.contact_id);
  const asked = (await scope.sessions.view(turn.contact_id))?.messages.find(
    (message) => message.role === 'user' && message.turnId === turnId,
  );
  const record = await findRecord({ scope, session }, turnId);
  if (session === undefined || record === undefined || asked?.role !== 'user')
    throw new AppError('not_found', `What ${turnId} asked is not in its session any more.`);
  const input: TurnInput = {
    origin: turn.origin,
    agent: turn.agent,
    authority: await findAuthority(scope, { agent: turn.agent, keyId: record.keyId }),
    channel: turn.channel,
    sender: session.sender,
    contactId: turn.contact_id,
    text: asked.text,
    attachments: asked.attachments ?? [],
    busy: 'queue',
    dedupeId: toDedupeId(turnId),
    requestHash: hash('sha256', toDedupeId(turnId)),
    keyId: record.keyId,
  };
  return await turns.accept(scope, input);
}

/**
 * What `retryTurn` does, of what a client asked for: bulk retries leave out the same. `isReplayed`: it was tried again
 * before, and this is the turn of then.
 * @throws AppError not_found, conflict, and what Turns.accept throws
 */
export async function retryAsked(
  { scope, turns }: { readonly scope: TenantScope; readonly turns: Turns },
  turnId: string,
): Promise<{ readonly turn: TurnView; readonly isReplayed: boolean }> {
  const turn = await turns.find(scope, turnId);
  if (turn === undefined) throw new AppError('not_found', 'There is no such turn.');
  if (turn.joinedTo !== undefined) throw new AppError('conflict', `It was answered together with ${turn.joinedTo}: retry that one.`);
  if (turn.origin !== 'api')
    throw new AppError('conflict', `Only what a client asked for is tried again, and this turn began as ${turn.origin}.`);
  const receipt = await retryTurn({ scope, turns }, turnId);
  const accepted = await turns.find(scope, receipt.turnId);
  if (accepted === undefined) throw new AppError('not_found', 'There is no such turn.');
  return { turn: accepted, isReplayed: receipt.replayed };
}

/** Of its session first: the index may be behind a turn that has just ended. */
async function findRecord(
  { scope, session }: { readonly scope: TenantScope; readonly session: Session | undefined },
  turnId: string,
): Promise<TurnRecord | undefined> {
  return session?.turns.find(({ id }) => id === turnId) ?? (await scope.index.findTurn(turnId))?.record;
}

/** What the agent may do as it is now, as far as the key that asked reaches: what strangers wrote gets no more. */
async function findAuthority(scope: TenantScope, { agent, keyId }: Pick<TurnInput, 'agent' | 'keyId'>): Promise<TurnInput['authority']> {
  if (agent === 'admin') return 'admin';
  const found = await scope.agents.find(agent);
  if (found === undefined || 'reason' in found || found.agent.access === 'cs') return 'cs';
  const keys = await scope.keys.list();
  return keys.some(({ id, scopes }) => id === keyId && scopes.includes('admin')) ? 'admin' : 'cs';
}
