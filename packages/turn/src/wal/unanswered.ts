import { AppError } from '@concierge/contract';
import { waitForAnswer } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { keyOf } from '../keys.ts';
import { findEnded } from '../lanes/duplicates.ts';
import type { UnsettledTurn } from './log-records.ts';

const ANSWER_MS = 1500;

/**
 * Writes the inbox files of those turns that have not ended, or of which Redis does not know whether all is done that
 * follows their end. Any process may do it, of any log, more than once: a file is never replaced, and one whose turn
 * ended meanwhile is removed again.
 */
export async function fileUnanswered(redis: Redis | undefined, scope: TenantScope, turns: readonly UnsettledTurn[]): Promise<void> {
  const identity = await scope.identity();
  // Of a tenant of the same name that was deleted since, nothing may come back.
  const own = turns.filter((one) => one.identity === identity);
  if (own.length === 0) return;
  const states = await readStates(redis, own);
  const unanswered: UnsettledTurn[] = [];
  for (const [index, one] of own.entries()) {
    const state = states?.[index];
    if (isLive(state) || (state == null && (await isUnfinished(scope, one, redis)))) unanswered.push(one);
  }
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

/** Those that Redis knows to have ended; none when it does not answer. */
export async function findEndedIn<Turn extends UnsettledTurn>(redis: Redis, turns: readonly Turn[]): Promise<Turn[]> {
  const states = turns.length === 0 ? [] : await readStates(redis, turns);
  return turns.filter((_, index) => {
    const state = states?.[index];
    return state != null && !isLive(state);
  });
}

function isLive(state: string | null | undefined): boolean {
  return state === 'waiting' || state === 'running';
}

/** Null for a turn that Redis does not know; undefined when Redis does not answer. */
async function readStates(redis: Redis | undefined, turns: readonly UnsettledTurn[]): Promise<(string | null)[] | undefined> {
  if (redis === undefined) return undefined;
  const ask = async (): Promise<(string | null)[]> =>
    Promise.all(turns.map(async ({ turn }) => redis.hget(keyOf.turn(turn.turnId), 'state')));
  return askInTime(redis, ask).catch(() => undefined);
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

/** Of a turn that Redis does not know, or that is asked for without it. */
async function isUnfinished(scope: TenantScope, { turn }: UnsettledTurn, redis: Redis | undefined): Promise<boolean> {
  const { sessionId, turnId } = turn;
  // It is published: what was sent to channels and told to webhooks after that, its worker may not have lived to do. A
  // worker that gets it again does what is missing of it, each once.
  if (redis !== undefined && (await scope.sessions.findTurn(sessionId, turnId)) !== undefined) return true;
  return (await findEnded(scope, turnId, sessionId)) === null && !(await scope.sessions.wasRemoved(turnId));
}
