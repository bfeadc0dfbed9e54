import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { AppError, type AcceptedTurn } from '@concierge/contract';
import { namesIn, parseStored, readLog, SharedRun } from '@concierge/files';
import { findSlot, hashParts, readBootId, waitForAnswer } from '@concierge/runtime';
import { readTurn, type HasEnded, type LoggedTurns, type TenantScope } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { keyOf } from '../keys.ts';
import { findEnded } from '../lanes/duplicates.ts';

/** A record is a line of JSON, one of these, and behind it the content that it is about. */
const Head = z.discriminatedUnion('kind', [
  /** A turn was accepted: the content of its inbox file follows. `identity`: its tenant's, see `Incarnation`. */
  z.object({ kind: z.literal('accepted'), identity: z.string() }),
  /** These turns have ended, have their inbox files, or were refused. */
  z.object({ kind: z.literal('settled'), turnIds: z.array(z.string()) }),
  /** A session was published: the content of its revision's file follows. */
  z.object({ kind: z.literal('published'), tenantId: z.string(), identity: z.string(), sessionId: z.string() }),
]);

/** A turn that a log has and no later record settles. */
export interface UnsettledTurn {
  readonly logId: string;
  readonly turn: AcceptedTurn;
  /** What its inbox file contains. */
  readonly content: string;
  readonly tenantId: string;
  readonly identity: string;
}

/** One of the last publications of a session in a log: its files may be on disk by now, or not. */
export interface LoggedSession {
  readonly tenantId: string;
  readonly identity: string;
  readonly content: string;
}

export interface LogContent {
  /** In the order of acceptance. */
  readonly turns: readonly UnsettledTurn[];
  /** In the order of publication. */
  readonly sessions: readonly LoggedSession[];
  /** Has records of a later version, which this one cannot recover. */
  readonly hasLater: boolean;
}

/** As many revisions as a session keeps (packages/tenant, session-revisions.ts). */
const revisionsKept = 3;

export function renderAccepted(identity: string, turn: string): string {
  return renderRecord({ kind: 'accepted', identity }, turn);
}

/** Not one JSON text: a content is JSON already, and long. */
export function renderRecord(head: z.infer<typeof Head>, content = ''): string {
  return `${JSON.stringify(head)}\n${content}`;
}

/** Begins with a mark of this start of the machine: what a power cut took can only be of a log of an earlier one. */
const bootMark = hashParts([readBootId()], { separator: 'unit', digits: 8 });

export function newLogId(): string {
  return `${bootMark}-${randomUUID()}`;
}

/** False for the log of another machine, too. */
export function isOfThisBoot(logId: string): boolean {
  return logId.startsWith(`${bootMark}-`);
}

/** Ids of the logs that are in the folder, of living processes and of dead ones. */
export async function listLogs(folder: string): Promise<string[]> {
  return (await namesIn(folder)).filter((name) => /^[0-9a-f]{8}-[0-9a-f-]{36}$/u.test(name));
}

/** One log, also of a living process. */
export async function readContent(folder: string, logId: string): Promise<LogContent> {
  const turns = new Map<string, UnsettledTurn>();
  const sessions = new Map<string, LoggedSession[]>();
  let hasLater = false;
  for (const text of await readLog(join(folder, logId))) {
    const end = text.indexOf('\n');
    const [parsed, content] = [parseStored(Head, text.slice(0, end)), text.slice(end + 1)];
    const head = parsed.status === 'ok' ? parsed.value : undefined;
    if (head?.kind === 'settled') for (const turnId of head.turnIds) turns.delete(turnId);
    else if (head?.kind === 'published') addSession(sessions, head, content);
    // A record of a later version, which this one would not know how to recover, is left to that.
    else if (head === undefined || !addTurn(turns, { logId, identity: head.identity, content })) hasLater = true;
  }
  return { turns: [...turns.values()], sessions: [...sessions.values()].flat(), hasLater };
}

function addSession(
  sessions: Map<string, LoggedSession[]>,
  { tenantId, identity, sessionId }: Pick<LoggedSession, 'tenantId' | 'identity'> & { readonly sessionId: string },
  content: string,
): void {
  const key = `${identity}/${sessionId}`;
  const before = sessions.get(key) ?? [];
  sessions.set(key, [...before.slice(1 - revisionsKept), { tenantId, identity, content }]);
}

/** False when a later version wrote it. */
function addTurn(turns: Map<string, UnsettledTurn>, record: Pick<UnsettledTurn, 'logId' | 'identity' | 'content'>): boolean {
  const read = readTurn(record.content);
  if (read.status === 'broken') return read.isLater !== true;
  const turn = read.value;
  if (!turns.has(turn.turnId)) turns.set(turn.turnId, { ...record, turn, tenantId: turn.tenantId });
  return true;
}

/** The logs of all processes as the disk has them: turns that ended a moment ago may still be among them. */
export class LogsOnDisk implements LoggedTurns {
  readonly #unsettled: SharedRun<UnsettledTurn[]>;

  /** `folder`: tenants/.wal */
  constructor(folder: string) {
    this.#unsettled = new SharedRun(async () => {
      const logs = await Promise.all((await listLogs(folder)).map(async (logId) => readContent(folder, logId)));
      return logs.flatMap(({ turns }) => turns);
    });
  }

  /** `except`: the log in which it is not looked for. */
  async find({ tenantId, turnId }: Pick<AcceptedTurn, 'tenantId' | 'turnId'>, except?: string): Promise<UnsettledTurn | undefined> {
    return (await this.findTurns(tenantId)).find(({ turn, logId }) => turn.turnId === turnId && logId !== except);
  }

  /** Of all tenants. */
  async turns(): Promise<readonly UnsettledTurn[]> {
    return this.#unsettled.run();
  }

  async findTurns(tenantId: string): Promise<UnsettledTurn[]> {
    return (await this.turns()).filter((one) => one.tenantId === tenantId);
  }

  async read(tenantId: string, turnId: string, hasEnded: HasEnded): Promise<string | undefined> {
    const found = await this.find({ tenantId, turnId });
    return found === undefined || (await hasEnded(found.turn)) ? undefined : found.content;
  }

  async turnIds(tenantId: string, hasEnded: HasEnded): Promise<readonly string[]> {
    const ids = new Set<string>();
    for (const { turn } of await this.findTurns(tenantId)) if (!(await hasEnded(turn))) ids.add(turn.turnId);
    return [...ids];
  }
}

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
    if (isLive(state) || (state == null && !(await needsNoFile(scope, one, repeatsEnds)))) unanswered.push(one);
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

async function needsNoFile(scope: TenantScope, { turn }: UnsettledTurn, repeatsEnds: boolean): Promise<boolean> {
  const { sessionId, turnId } = turn;
  if (repeatsEnds && (await scope.sessions.findTurn(sessionId, turnId)) !== undefined) return false;
  return (await findEnded(scope, turnId, sessionId)) !== null || scope.sessions.wasRemoved(turnId);
}
