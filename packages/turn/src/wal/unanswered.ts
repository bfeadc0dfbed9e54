import { AppError } from '@concierge/contract';
import { findSlot, waitForAnswer } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import { findEnded } from '../lanes/duplicates.ts';
import type { UnsettledTurn } from './log-records.ts';

const ANSWER_MS = 1500;

export interface Unanswered {
  readonly turns: readonly UnsettledTurn[];
  /**
   * For a Redis that has lost what it knew: a turn that is published gets its file, too. What was to be sent to
   * channels and told to webhooks after that, its worker may not have lived to do; the one that gets it again does what
   * is missing, each once.
   */
  readonly repeatsEnds?: boolean;
}

/**
 * Writes the inbox files of those turns that have not ended. Any process may do it, of any log, more than once: a file
 * is never replaced, and one whose turn ended meanwhile is removed again.
 */
export async function fileUnanswered(anySlot: Redis | undefined, scope: TenantScope, asked: Unanswered): Promise<void> {
  const redis = anySlot && findSlot(anySlot, scope.tenantId);
  const unanswered = await findUnanswered(redis, scope, asked);
  if (unanswered.length === 0) return;
  const { failure } = await scope.inbox.acceptInOrder(unanswered.map(({ turn }) => turn)).catch((error: unknown) => {
    // The tenant was deleted meanwhile.
    if (error instanceof AppError && error.code === 'not_found') return { failure: undefined };
    throw error;
  });
  if (failure !== undefined) throw failure;
  // Again, after the file: a worker that ended the turn in between found none to remove.
  for (const { turn } of redis === undefined ? [] : await findEndedIn(redis, unanswered)) await scope.inbox.remove(turn.turnId);
  if (redis === undefined) return;
  await askInTime(redis, async () => redis.hdel(keyOf.logged(scope.tenantId), ...unanswered.map(({ turn }) => turn.turnId))).catch(
    () => undefined,
  );
}

async function findUnanswered(
  redis: Redis | undefined,
  scope: TenantScope,
  { turns, repeatsEnds = false }: Unanswered,
): Promise<UnsettledTurn[]> {
  const identity = await scope.identity();
  // Of a tenant of the same name that was deleted since, nothing may come back.
  const own = turns.filter((one) => one.identity === identity);
  const states = own.length === 0 ? [] : await readStates(redis, own);
  const unanswered: UnsettledTurn[] = [];
  for (const [index, one] of own.entries()) {
    const state = states[index];
    if (isLive(state) || (state == null && !(await hasEnded(scope, one, repeatsEnds)))) unanswered.push(one);
  }
  return unanswered;
}

/** Those that Redis knows to have ended; none when it does not answer. */
export async function findEndedIn<Turn extends UnsettledTurn>(redis: Redis, turns: readonly Turn[]): Promise<Turn[]> {
  const states = turns.length === 0 ? [] : await readStates(redis, turns);
  return turns.filter((_, index) => {
    const state = states[index];
    return state != null && !isLive(state);
  });
}

function isLive(state: string | null | undefined): boolean {
  return state === 'waiting' || state === 'running';
}

/** Null for a turn that its slot does not know; undefined when the slot does not answer. */
async function readStates(redis: Redis | undefined, turns: readonly UnsettledTurn[]): Promise<(string | null | undefined)[]> {
  const states = new Map<string, string | null>();
  if (redis === undefined) return [];
  const bySlot = Map.groupBy(turns, ({ tenantId }) => findSlot(redis, tenantId));
  const asking = Array.from(bySlot, async ([slot, own]) => {
    const ask = async (): Promise<void> => {
      const found = await Promise.all(own.map(async ({ turn }) => slot.hget(keyOf.turn(turn.turnId), 'state')));
      for (const [index, { turn }] of own.entries()) states.set(turn.turnId, found[index] ?? null);
    };
    await askInTime(slot, ask).catch(() => undefined);
  });
  await Promise.all(asking);
  return turns.map(({ turn }) => states.get(turn.turnId));
}

/**
 * The connection of a worker waits for Redis as long as it takes: what the disk can answer does not.
 * @throws when Redis is not connected, or does not answer
 */
export async function askInTime<Answer>(redis: Redis, ask: () => Promise<Answer>): Promise<Answer> {
  if (redis.status !== 'ready') throw new Error('Redis is not connected');
  const late = waitForAnswer(ANSWER_MS).then(() => {
    throw new Error('Redis does not answer');
  });
  return await Promise.race([ask(), late]);
}

async function hasEnded(scope: TenantScope, { turn }: UnsettledTurn, repeatsEnds: boolean): Promise<boolean> {
  const { sessionId, turnId } = turn;
  if (repeatsEnds && (await scope.sessions.findTurn(sessionId, turnId)) !== undefined) return false;
  return (await findEnded(scope, turnId, sessionId)) !== null || scope.sessions.wasRemoved(turnId);
}
