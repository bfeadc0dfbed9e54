import { setTimeout as wait } from 'node:timers/promises';
import { CursorPages, toTurnView, type Page, type TurnsQuery } from '@concierge/index';
import { toError, unlessLater } from '@concierge/files';
import {
  AppError,
  clip,
  limits,
  viewSteps,
  type AcceptedTurn,
  type TurnStatus,
  type TurnTrace,
  type TurnView,
  type WaitsFor,
  isSimulated,
  type SessionMessage,
} from '@concierge/contract';
import { askSlots, findSlot } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import type { AcceptOptions } from './lanes/accept.ts';
import { OrderedAcceptance } from './lanes/accept-in-order.ts';
import { findEndedTurn } from './ended-turns.ts';
import { deriveTurnId, isTurnId, keyOf } from './keys.ts';
import { describeWaitToTenant } from './waiting/describe-wait.ts';
import { buildTrace, type TraceSources } from './traces/build-trace.ts';
import { WaitingRoom } from './waiting/waiting-turns.ts';
import { toStep, readEntries } from './streams/stream-entry.ts';

/** The maximum of live turns read for one page; a tenant with more of them sees the newest. */
const LIVE_AT_MOST = 1000;
const STOPPED_LOOK_EVERY_MS = 100;
/** A look that took longer, this process or what it asks standing still, counts as so long. */
const STOPPED_LOOK_MAX_MS = 1000;
/** Each reads a file, writes one and asks Redis. */
const CANCELLED_AT_ONCE = 16;

/** How many turns were cancelled. With a `failure`, only those before it. */
export interface CancelledCount {
  readonly waiting: number;
  readonly running: number;
  /** There was a turn to cancel when it looked, and `onBegin` was called; it may have ended by itself since. */
  readonly isBegun: boolean;
  readonly failure?: Error;
}

interface CancelAllOptions {
  /** Only counts. */
  readonly dryRun?: boolean;
  /** Called before the first turn is cancelled, if there is one to cancel; none is when it rejects. */
  readonly onBegin?: () => Promise<void>;
}

interface AskedToStop {
  readonly isAsked: boolean;
  readonly failure?: Error;
}

function isAskedFor(turn: TurnView, { status, contact_id: contactId, agent, channel, origin, id }: TurnsQuery): boolean {
  const pairs = [
    [status, turn.status],
    [contactId, turn.contact_id],
    [agent, turn.agent],
    [channel, turn.channel],
    [origin, turn.origin],
  ];
  const fits = pairs.every(([asked, found]) => asked === undefined || asked === found);
  return fits && (id === undefined || turn.id === id || turn.contact_id === id);
}

/** The caller that asks for a turn: a key that may see only its own turns is named here. */
export interface TurnViewer {
  readonly onlyKeyId?: string;
  /** Why a waiting turn waits is looked up, too. */
  readonly explains?: boolean;
}

interface LiveFacts {
  readonly status: TurnStatus;
  readonly startedAt: string | null;
  readonly attempts: number;
  readonly isCancelled: boolean;
}

/** The beginning of a message, as lists show it. */
function excerpt(text: string): string {
  return clip(text, limits.excerptMaxCharacters - 1);
}

/** Everything that endpoints do with turns: accept, look up, list, cancel. */
export class Turns extends OrderedAcceptance {
  readonly #redis: AcceptOptions['redis'];
  readonly #room: WaitingRoom;

  constructor(options: AcceptOptions) {
    super(options);
    this.#redis = options.redis;
    this.#room = new WaitingRoom(options.redis);
  }

  /** Live or ended, with its steps; undefined when this tenant has no such turn (or the viewer may not see it). */
  async find(scope: TenantScope, turnId: string, viewer: TurnViewer = {}): Promise<TurnView | undefined> {
    const found = await this.#find(scope, turnId, viewer);
    if (found === undefined) return undefined;
    const { turn, deliveries } = found;
    return { ...turn, ...(deliveries.length > 0 && { deliveries: deliveries.map((delivery) => delivery.view()) }) };
  }

  /** The life of a turn, live or ended; undefined as in `find`. */
  async trace(scope: TenantScope, turnId: string, viewer: TurnViewer = {}): Promise<TurnTrace | undefined> {
    const found = await this.#find(scope, turnId, { ...viewer, explains: true });
    return found === undefined ? undefined : buildTrace(found);
  }

  async #find(scope: TenantScope, turnId: string, viewer: TurnViewer): Promise<TraceSources | undefined> {
    if (!isTurnId(turnId)) return undefined;
    const live = await scope.inbox.read(turnId);
    const ended = await (live === undefined ? findEndedTurn(this.#redis, scope, turnId) : scope.index.findTurn(turnId));
    const keyId = live?.keyId ?? ended?.record.keyId;
    if (viewer.onlyKeyId !== undefined && keyId !== viewer.onlyKeyId) return undefined;
    const deliveries = await scope.outbox.ofTurn(turnId);
    if (ended !== undefined) {
      const { steps, trace: facts } = ended.record;
      return { turn: { ...toTurnView(ended), steps }, facts, deliveries };
    }
    if (live === undefined) return undefined;
    const steps = await readEntries(findSlot(this.#redis, scope.tenantId), turnId, null).then(
      (entries) => viewSteps(entries.map((entry) => toStep(entry)).filter((step) => step !== null)),
      () => [],
    );
    const facts = live.receivedAtMs === undefined ? undefined : { receivedAt: new Date(live.receivedAtMs).toISOString(), waits: [] };
    return { turn: { ...(await this.#viewLive(live, viewer)), steps }, facts, deliveries };
  }

  /** Newest acceptance first: live turns from the inbox, ended ones from the index; a page may hold both. */
  async list(scope: TenantScope, query: TurnsQuery): Promise<Page<TurnView>> {
    // A turn that has not ended has no error.
    const wantsLive = (query.status === undefined || isLive(query.status)) && query.code === undefined;
    const wantsEnded = query.status === undefined || !isLive(query.status);
    const after = pages.readCursor(query.cursor);
    const live = wantsLive ? await this.#live(scope) : [];
    const ended = wantsEnded ? await scope.index.listTurns(query) : { items: [], nextCursor: null };
    // A turn that ends meanwhile may be in both: the record is newer.
    const seen = new Set(ended.items.map(({ id }) => id));
    const fitting = live.filter((turn) => !seen.has(turn.id) && isAskedFor(turn, query) && pages.isBehind(turn, after));
    return pages.cutPage([...fitting, ...ended.items], { limit: query.limit, hasMore: ended.nextCursor !== null });
  }

  /**
   * Adds to turns how their messages begin, and whether they were simulated: for the tenant's own eyes. Reads the inbox
   * file of a live turn, and the session of ended ones, once for all of its turns here: only for what is shown, a page
   * at most.
   */
  async withInputs(scope: TenantScope, turns: readonly TurnView[]): Promise<TurnView[]> {
    const inputs = new Map<string, string>();
    const simulated = new Set<string>();
    for (const { id } of turns.filter(({ endedAt }) => endedAt === null)) {
      const live = await unlessLater(scope.inbox.read(id));
      if (live === undefined) continue;
      inputs.set(id, excerpt(live.text));
      if (isSimulated(live.sender)) simulated.add(live.sessionId);
    }
    for (const sessionId of new Set(turns.filter(({ id }) => !inputs.has(id)).map(({ contact_id: id }) => id))) {
      const session = await unlessLater(scope.sessions.load(sessionId));
      if (isSimulated(session?.sender)) simulated.add(sessionId);
      for (const { turnId, text } of session?.messages.flatMap(listSaid) ?? []) inputs.set(turnId, excerpt(text));
    }
    return turns.map((turn) => {
      const input = inputs.get(turn.id);
      return { ...turn, ...(input !== undefined && { input }), ...(simulated.has(turn.contact_id) && { simulated: true as const }) };
    });
  }

  /** @throws AppError `not_found` */
  async cancel(scope: TenantScope, turnId: string, viewer: TurnViewer = {}): Promise<TurnView> {
    const turn = await this.find(scope, turnId, viewer);
    if (turn === undefined) throw new AppError('not_found', 'There is no such turn.');
    if (turn.status === 'waiting' || turn.status === 'running') await this.requestCancel(scope, turnId);
    return turn;
  }

  /** Whose turn this is, by its id alone: known in Redis, in the slot of its tenant, while it waits or runs. */
  async findTenant(turnId: string): Promise<string | undefined> {
    const accounts = await askSlots(this.#redis, async (slot) => slot.hget(keyOf.turn(turnId), 'account'));
    return accounts.find((account) => account !== null) ?? undefined;
  }

  /** The turn that was accepted under this id of its channel or caller, if there ever was one. */
  async findAccepted(scope: TenantScope, dedupeId: string): Promise<TurnView | undefined> {
    return this.find(scope, deriveTurnId(await scope.identity(), dedupeId));
  }

  /** Cancels the agent's running answer in a conversation; waiting turns stay, and a staff member's message is sent. */
  async cancelRunning(scope: TenantScope, sessionId: string): Promise<void> {
    for (const turnId of await scope.inbox.turnIds()) {
      const turn = await unlessLater(scope.inbox.read(turnId));
      if (turn?.sessionId !== sessionId || turn.origin === 'person') continue;
      if ((await this.#liveFacts({ tenantId: scope.tenantId, turnId })).status === 'running') await this.requestCancel(scope, turnId);
    }
  }

  /** Cancels live turns that a turn has started: the inbox is the truth, whichever process accepted them. */
  async cancelChildren(scope: TenantScope, parentTurnId: string): Promise<void> {
    for (const turnId of await scope.inbox.turnIds()) {
      const turn = await unlessLater(scope.inbox.read(turnId));
      if (turn?.grant?.parentTurnId === parentTurnId) await this.requestCancel(scope, turnId);
    }
  }

  /**
   * Cancels all live turns of a tenant, or counts them; those that wait first, so that none of them begins. Counted are
   * those that were not to be cancelled before. A turn that a later version wrote is left to that version. Does not
   * reject where it is cut off after `onBegin`: what it did until then is told together with the `failure`.
   */
  async cancelAll(scope: TenantScope, { dryRun = false, onBegin }: CancelAllOptions = {}): Promise<CancelledCount> {
    const { tenantId } = scope;
    const readOne = async (turnId: string) => ({ turnId, ...(await this.#liveFacts({ tenantId, turnId })) });
    const live = await Promise.all((await scope.inbox.turnIds()).map(readOne));
    const isWanted = ({ status, isCancelled }: LiveFacts): boolean => !isCancelled && (status === 'waiting' || status === 'running');
    const isBegun = !dryRun && live.some(isWanted);
    if (isBegun) await onBegin?.();
    const count = { waiting: 0, running: 0, isBegun };
    for (const wanted of ['waiting', 'running'] as const) {
      const those = live.filter(({ status }) => status === wanted);
      for (let from = 0; from < those.length; from += CANCELLED_AT_ONCE) {
        const some = those.slice(from, from + CANCELLED_AT_ONCE);
        const asked: readonly AskedToStop[] = dryRun
          ? some.map(() => ({ isAsked: true }))
          : await Promise.all(some.map(async ({ turnId }) => this.#cancelOne(scope, turnId)));
        count[wanted] += some.filter(({ isCancelled }, position) => !isCancelled && asked[position]?.isAsked === true).length;
        const failure = asked.find((one) => one.failure !== undefined)?.failure;
        if (failure !== undefined) return { ...count, failure };
      }
    }
    return count;
  }

  /** A turn whose flag is on disk is asked to stop, whatever failed afterwards. */
  async #cancelOne(scope: TenantScope, turnId: string): Promise<AskedToStop> {
    try {
      return { isAsked: (await unlessLater(this.requestCancel(scope, turnId))) ?? false };
    } catch (error) {
      return { isAsked: await scope.inbox.isCancelled(turnId), failure: toError(error) };
    }
  }

  /**
   * Cancels all live turns of a tenant and waits until none of them runs, sandboxes included: a worker removes those
   * before it announces a turn's end.
   * @returns how many still run when the time is over
   */
  async stopAll(scope: TenantScope, timeoutMs: number): Promise<number> {
    const { failure } = await this.cancelAll(scope);
    if (failure !== undefined) throw failure;
    return lookUntilNone(timeoutMs, async () => {
      const turnIds = await scope.inbox.turnIds();
      const facts = await Promise.all(turnIds.map(async (turnId) => this.#liveFacts({ tenantId: scope.tenantId, turnId })));
      return facts.filter(({ status }) => status === 'running').length;
    });
  }

  /**
   * Cancels those live turns and waits until they have ended and are saved, whether they ran or waited.
   * @returns how many have not when the time is over
   */
  async endTurns(scope: TenantScope, turnIds: ReadonlySet<string>, timeoutMs: number): Promise<number> {
    for (const turnId of turnIds) await this.requestCancel(scope, turnId);
    return lookUntilNone(timeoutMs, async () => (await scope.inbox.turnIds()).filter((turnId) => turnIds.has(turnId)).length);
  }

  async #live(scope: TenantScope): Promise<TurnView[]> {
    const files = (await scope.inbox.list()).toSorted((left, right) => right.mtimeMs - left.mtimeMs).slice(0, LIVE_AT_MOST);
    const views = await Promise.all(
      files.map(async ({ turnId }) => {
        const turn = await unlessLater(scope.inbox.read(turnId));
        return turn === undefined ? undefined : toLiveView(turn, await this.#liveFacts(turn));
      }),
    );
    return views.filter((view) => view !== undefined);
  }

  async #viewLive(live: AcceptedTurn, { explains = false }: TurnViewer): Promise<TurnView> {
    const view = toLiveView(live, await this.#liveFacts(live));
    if (!explains || view.status !== 'waiting') return view;
    const waitsFor = (await this.#explainWaits(live.tenantId, [live])).get(live.turnId);
    return { ...view, ...(waitsFor !== undefined && { waitsFor }) };
  }

  /** Adds to turns that wait why they do, as far as Redis can be asked: for the tenant's own eyes. */
  async withWaits(scope: TenantScope, turns: readonly TurnView[]): Promise<TurnView[]> {
    const asked = turns.filter(({ status }) => status === 'waiting').map(({ id, contact_id: sessionId }) => ({ turnId: id, sessionId }));
    const waits = await this.#explainWaits(scope.tenantId, asked);
    return turns.map((turn) => {
      const waitsFor = waits.get(turn.id);
      return { ...turn, ...(waitsFor !== undefined && { waitsFor }) };
    });
  }

  async #explainWaits(
    tenantId: string,
    asked: readonly Pick<AcceptedTurn, 'sessionId' | 'turnId'>[],
  ): Promise<ReadonlyMap<string, WaitsFor>> {
    if (asked.length === 0) return new Map();
    const found = await this.#room.explain(tenantId, asked).catch(() => undefined);
    return new Map(found?.turns.map((turns) => [turns.turnId, describeWaitToTenant(turns, found.look)]));
  }

  async #liveFacts({ tenantId, turnId }: Pick<AcceptedTurn, 'tenantId' | 'turnId'>): Promise<LiveFacts> {
    const [state, startedAt, attempts, cancelled] = await findSlot(this.#redis, tenantId)
      .hmget(keyOf.turn(turnId), 'state', 'startedAt', 'attempts', 'cancelled')
      .catch(() => [null, null, null, null]);
    return {
      status: state === 'running' ? 'running' : 'waiting',
      startedAt: startedAt == null ? null : new Date(Number(startedAt)).toISOString(),
      attempts: Number(attempts ?? 0),
      isCancelled: cancelled === '1',
    };
  }
}

const pages = new CursorPages<TurnView>('turns', ({ acceptedAt, id }) => ({ atMs: Date.parse(acceptedAt), id }));

/** What each turn was asked that this message has the words of. */
function listSaid(message: SessionMessage): readonly { readonly turnId: string; readonly text: string }[] {
  return message.role === 'user' ? (message.said ?? [message]) : [];
}

/** @returns how many are left when the time is over */
async function lookUntilNone(timeoutMs: number, look: () => Promise<number>): Promise<number> {
  for (let leftMs = timeoutMs; ;) {
    const beganMs = Date.now();
    const left = await look();
    if (left === 0 || leftMs <= 0) return left;
    await wait(STOPPED_LOOK_EVERY_MS);
    leftMs -= Math.min(Math.max(Date.now() - beganMs, STOPPED_LOOK_EVERY_MS), STOPPED_LOOK_MAX_MS);
  }
}

function isLive(status: TurnStatus): boolean {
  return status === 'waiting' || status === 'running';
}

function toLiveView(turn: AcceptedTurn, { status, startedAt, attempts, isCancelled }: LiveFacts): TurnView {
  const { turnId: id, sessionId, agent, channel, origin, grant, acceptedAtMs } = turn;
  const parent = grant === undefined ? {} : { parentTurnId: grant.parentTurnId };
  const acceptedAt = new Date(acceptedAtMs).toISOString();
  const open = { firstTextAt: null, endedAt: null, usage: { inputTokens: 0, outputTokens: 0 }, finishReason: null, error: null };
  const cancelling = isCancelled ? { cancelling: true as const } : {};
  return { id, contact_id: sessionId, agent, channel, origin, ...parent, status, acceptedAt, startedAt, attempts, ...open, ...cancelling };
}
