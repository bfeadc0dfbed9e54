import { join } from 'node:path';
import { DAY_MS, type RetentionReport, type RetentionRule } from '@concierge/contract';
import { lstatIfThere, namesIn } from '@concierge/files';
import { failpoint } from '@concierge/runtime';
import type { TenantScope } from '../tenant-scope.ts';

/** One look, of which a report counts as much. */
const LOOK_AT_MOST = 5000;
const SESSIONS_AT_ONCE = 200;
const EXAMPLES_MAX = 20;
/** What is accepted meanwhile is looked for again after so many. */
const REMOVED_AT_ONCE = 20;
const HISTORY_SUFFIX = '.history.jsonl';

interface Sized {
  readonly id: string;
  readonly bytes: number;
}

/** What a rule removes: ids of conversations, of conversations whose history goes, and of uploads. */
export interface Expired {
  readonly sessions: readonly string[];
  readonly history: readonly Sized[];
  readonly uploads: readonly Sized[];
  /** There is more than one look finds. */
  readonly hasMore: boolean;
}

export interface RetentionLook {
  readonly rule: RetentionRule;
  readonly nowMs: number;
}

const toCutoff = (days: number | undefined, nowMs: number): number => (days === undefined ? -Infinity : nowMs - days * DAY_MS);

/** What has expired. A conversation that waits for an answer, or that staff has, has not. */
export async function findExpired(scope: TenantScope, { rule, nowMs }: RetentionLook): Promise<Expired> {
  const busy = await scope.busySessions();
  const sessions = await findSessions(scope, toCutoff(rule.sessionsDays, nowMs), busy);
  const gone = new Set(sessions);
  const history = await findHistory(scope, toCutoff(rule.historyDays, nowMs), (id) => !gone.has(id) && !busy.has(id));
  const uploads = await findUploads(scope, toCutoff(rule.uploadsDays, nowMs));
  return { sessions, history, uploads, hasMore: [sessions, history, uploads].some(({ length }) => length >= LOOK_AT_MOST) };
}

async function findSessions(scope: TenantScope, cutoffMs: number, busy: ReadonlySet<string>): Promise<string[]> {
  const found: string[] = [];
  if (cutoffMs === -Infinity) return found;
  let cursor: string | null | undefined;
  while (cursor !== null && found.length < LOOK_AT_MOST) {
    const page = await scope.index.listSessions({ limit: SESSIONS_AT_ONCE, cursor, updatedBeforeMs: cutoffMs });
    for (const { id } of page.items) {
      if (found.length < LOOK_AT_MOST && !busy.has(id) && !(await scope.handoffs.isPaused(id))) found.push(id);
    }
    cursor = page.nextCursor;
  }
  return found;
}

async function findHistory(scope: TenantScope, cutoffMs: number, isMeant: (sessionId: string) => boolean): Promise<Sized[]> {
  const found: Sized[] = [];
  if (cutoffMs === -Infinity) return found;
  for (const name of await namesIn(join(scope.root, 'sessions'))) {
    const id = name.slice(0, -HISTORY_SUFFIX.length);
    if (found.length >= LOOK_AT_MOST || !name.endsWith(HISTORY_SUFFIX) || !isMeant(id)) continue;
    const stats = await lstatIfThere(join(scope.root, 'sessions', name));
    if (stats !== undefined && stats.mtimeMs < cutoffMs) found.push({ id, bytes: stats.size });
  }
  return found;
}

async function findUploads(scope: TenantScope, cutoffMs: number): Promise<Sized[]> {
  return cutoffMs === -Infinity ? [] : scope.uploads.listBefore(cutoffMs, LOOK_AT_MOST);
}

/** How much that is. */
export function toRetentionReport(rule: RetentionRule, { sessions, history, uploads, hasMore }: Expired): RetentionReport {
  const count = (items: readonly Sized[]): RetentionReport['history'] => ({
    count: items.length,
    bytes: items.reduce((sum, { bytes }) => sum + bytes, 0),
  });
  const examples = sessions.slice(0, EXAMPLES_MAX);
  return { rule, sessions: { count: sessions.length, examples }, history: count(history), uploads: count(uploads), hasMore };
}

/** A dry run: what the rule of the settings would remove now, or another one. */
export async function reportExpired(scope: TenantScope, other: RetentionRule, nowMs = Date.now()): Promise<RetentionReport> {
  const rule = Object.values(other).some((days) => days !== undefined) ? other : ((await scope.settings()).retention ?? {});
  return toRetentionReport(rule, await findExpired(scope, { rule, nowMs }));
}

/**
 * Removes what has expired and has it still. May be cut off anywhere and repeated.
 * @returns what was removed
 */
export async function removeExpired(scope: TenantScope, look: RetentionLook): Promise<Expired> {
  const expired = await findExpired(scope, look);
  const cutoffMs = toCutoff(look.rule.sessionsDays, look.nowMs);
  const sessions: string[] = [];
  let busy = await scope.busySessions();
  for (const [index, id] of expired.sessions.entries()) {
    if (index % REMOVED_AT_ONCE === 0) busy = await scope.busySessions();
    if (!busy.has(id) && (await removeSession(scope, id, cutoffMs))) sessions.push(id);
  }
  await failpoint('retention.after-sessions');
  const keptFromMs = toCutoff(look.rule.historyDays, look.nowMs);
  const history: Sized[] = [];
  for (const [index, one] of expired.history.entries()) {
    if (index % REMOVED_AT_ONCE === 0) busy = await scope.busySessions();
    if (!busy.has(one.id) && (await removeHistory(scope, one.id, keptFromMs))) history.push(one);
  }
  if (keptFromMs !== -Infinity) await scope.fileHistory.erase(({ at }) => Date.parse(at) < keptFromMs);
  for (const { id } of expired.uploads) await scope.uploads.remove(id);
  return { ...expired, sessions, history };
}

/** Unless compaction has put something away meanwhile. */
async function removeHistory(scope: TenantScope, id: string, beforeMs: number): Promise<boolean> {
  // First: where the index does not answer, the messages are still there to be removed with it the next time.
  await scope.index.passages.dropSession(id);
  return scope.sessions.removeHistory(id, beforeMs);
}

/** Unless something came meanwhile: the lists may be behind the files. */
async function removeSession(scope: TenantScope, id: string, cutoffMs: number): Promise<boolean> {
  const session = await scope.sessions.load(id);
  if (session === undefined || Date.parse(session.updatedAt) >= cutoffMs) return false;
  if (await scope.handoffs.isPaused(id)) return false;
  return scope.removeSession(id);
}
