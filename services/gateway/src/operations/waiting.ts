import { statfs } from 'node:fs/promises';
import { AppError, routes, seriesRanges, usageDays, type Health } from '@concierge/contract';
import { examineDeployment, type Deployed } from '@concierge/core/examine-deployment';
import type { TenantOperations } from '@concierge/core/tenant-operations';
import {
  LoadSeries,
  readKeptLog,
  setDrained,
  sumTenants,
  sumWaiting,
  viewOverview,
  viewWaiting,
  viewWorker,
  WaitingRoom,
  type WaitingTurns,
} from '@concierge/turn';
import { readRedisMemory, type connectRedis } from '@concierge/runtime';
import { pageLink, streamed, type Handlers } from '../http/call.ts';
import type { FeedStreams } from '../sse/feed-streams.ts';
import { readiness, type ReadinessChecks } from './readiness.ts';

export interface WaitingOptions {
  readonly operations: Pick<TenantOperations, 'listUsage' | 'recordForDeployment'>;
  readonly redis: ReturnType<typeof connectRedis>;
  readonly dataDir: string;
  readonly checks: ReadinessChecks;
  readonly drain: { readonly leaving: boolean };
  /** What is looked at beside this gateway. */
  readonly deployed: Omit<Deployed, 'redis'>;
  readonly feedStreams: Pick<FeedStreams, 'streamAll'>;
}

/** Several people who look at once share one look. */
const LOOK_KEPT_MS = 1000;
/** Half of the time between two samples. */
const TRENDS_KEPT_MS = 5000;

/** What waits, what runs, and what works, for operators. */
export function waitingHandlers(
  options: WaitingOptions,
): Pick<
  Handlers,
  | 'getOverview'
  | 'followOperatorFeed'
  | 'listWaiting'
  | 'listWorkers'
  | 'drainWorker'
  | 'undrainWorker'
  | 'getSeries'
  | 'listLogLines'
  | 'listUsageOfTenants'
  | 'getHealth'
> {
  const room = new WaitingRoom(options.redis);
  const series = new LoadSeries(options.redis);
  const look = keepAnswer(async () => room.look(), LOOK_KEPT_MS);
  const readTrends = keepAnswer(async () => series.readTenants(Date.now()), TRENDS_KEPT_MS);
  return {
    getOverview: async () => ({ kind: 'answer', status: 200, json: viewOverview(await look()) }),
    followOperatorFeed: ({ response }) => {
      options.feedStreams.streamAll(response);
      return streamed;
    },
    listWaiting: async ({ query: { tenant, reason, limit, cursor } }) => {
      // What waits can be read where the trends cannot: those of all tenants are in one slot of Redis.
      const [found, trends] = await Promise.all([look(), readTrends().catch(() => new Map<string, number[]>())]);
      const asked = found.waiting.filter(
        (turns) => (tenant === undefined || turns.tenantId === tenant) && (reason === undefined || turns.reason === reason),
      );
      const after = cursor === undefined ? undefined : readCursor(cursor);
      const behind = asked.toSorted(compare).filter((turns) => after === undefined || compare(after, turns) < 0);
      const page = behind.slice(0, limit);
      const last = behind.length > limit ? page.at(-1) : undefined;
      const json = {
        at: new Date(found.atMs).toISOString(),
        isWhole: found.isWhole,
        reasons: sumWaiting({ ...found, waiting: asked }),
        tenants: sumTenants({ ...found, waiting: asked }, trends),
        waiting: page.map((turns) => viewWaiting(turns, found)),
      };
      const next = last === undefined ? null : toCursor(last);
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listWaiting.path, { limit, tenant, reason }, next) };
    },
    listWorkers: async () => {
      const { workers } = await look();
      const oldestFirst = workers.toSorted((left, right) => left.startedAt.localeCompare(right.startedAt));
      return { kind: 'answer', status: 200, json: oldestFirst.map(viewWorker) };
    },
    drainWorker: async ({ params, requestId }) => drain(options, { id: params.id, isDrained: true, requestId }),
    undrainWorker: async ({ params, requestId }) => drain(options, { id: params.id, isDrained: false, requestId }),
    getSeries: async ({ query: { range } }) => {
      const points = await series.read(range);
      return { kind: 'answer', status: 200, json: { range, pointSeconds: seriesRanges[range].pointMs / 1000, points } };
    },
    listLogLines: async ({ query }) => {
      const { lines, nextCursor } = await readKeptLog(options.redis, query);
      const { cursor: _here, ...asked } = query;
      return { kind: 'answer', status: 200, json: lines, headers: pageLink(routes.listLogLines.path, asked, nextCursor) };
    },
    listUsageOfTenants: async ({ query: { tenant, limit, cursor, ...asked } }) => {
      const days = usageDays(asked, Date.now());
      // One more shows whether there is another page.
      const found = await options.operations.listUsage(days, { tenant, after: cursor, limit: limit + 1 });
      const json = found.slice(0, limit);
      const next = found.length > limit ? (json.at(-1)?.tenantId ?? null) : null;
      return { kind: 'answer', status: 200, json, headers: pageLink(routes.listUsageOfTenants.path, { ...days, tenant, limit }, next) };
    },
    getHealth: async () => ({ kind: 'answer', status: 200, json: await readHealth(options) }),
  };
}

interface DrainAsked {
  readonly id: string;
  readonly isDrained: boolean;
  readonly requestId: string;
}

/** @throws AppError not_found */
async function drain({ redis, operations }: WaitingOptions, { id, isDrained, requestId }: DrainAsked) {
  const worker = await setDrained(redis, id, isDrained);
  if (worker === undefined) throw new AppError('not_found', 'No worker with this id lives.');
  await operations.recordForDeployment(isDrained ? 'worker.drain' : 'worker.undrain', id, { requestId });
  return { kind: 'answer', status: 200, json: viewWorker(worker) } as const;
}

/** Reads anew what is older than that. */
function keepAnswer<Answer>(read: () => Promise<Answer>, keptMs: number): () => Promise<Answer> {
  let kept: Promise<Answer> | undefined;
  let readMs = -Infinity;
  return async () => {
    if (kept === undefined || performance.now() - readMs > keptMs) {
      readMs = performance.now();
      kept = read().catch((error: unknown) => {
        kept = undefined;
        throw error;
      });
    }
    return kept;
  };
}

type Place = Pick<WaitingTurns, 'sinceMs' | 'turnId'>;

/** The longest wait first. */
function compare(left: Place, right: Place): number {
  return left.sinceMs - right.sinceMs || left.turnId.localeCompare(right.turnId);
}

function toCursor({ sinceMs, turnId }: Place): string {
  return `${String(sinceMs)}_${turnId}`;
}

/** @throws AppError invalid_request */
function readCursor(cursor: string): Place {
  const [, sinceMs, turnId] = /^(\d+(?:\.\d+)?)_(t_[0-9a-f]+)$/u.exec(cursor) ?? [];
  if (sinceMs === undefined || turnId === undefined)
    throw new AppError('invalid_request', undefined, { errors: [{ path: 'cursor', message: 'is not from a page of this list' }] });
  return { sinceMs: Number(sinceMs), turnId };
}

async function readHealth({ redis, dataDir, checks, drain, deployed }: WaitingOptions): Promise<Health> {
  const [found, memory, disk, providers, findings] = await Promise.all([
    readiness(checks),
    readRedisMemory(redis).catch(() => null),
    statfs(dataDir).catch(() => undefined),
    new LoadSeries(redis).readProviders(Date.now()).catch(() => []),
    examineDeployment({ ...deployed, redis: async () => Promise.resolve(redis) }),
  ]);
  return {
    status: drain.leaving ? 'shutting_down' : found.status,
    checks: found.checks,
    redis: memory,
    disk: disk === undefined ? null : { freeBytes: disk.bavail * disk.bsize, sizeBytes: disk.blocks * disk.bsize },
    providers,
    findings,
  };
}
