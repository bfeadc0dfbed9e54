import { jest } from '@jest/globals';
import { AppError, type AcceptedTurn, type Session, type TurnEvent, type TurnInput, type TurnRecord } from '@concierge/contract';
import type { IndexStore } from '@concierge/index';
import { background, connectRedis, openConnection } from '@concierge/runtime';
import type { Redis } from 'ioredis';
import type { Tenants, TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log, type TestRedis } from '@concierge/testing';
import { newReconciler, TestCore, type Core, type TestCoreOptions } from '@concierge/testing/core';
import { Lanes, Turns, TurnStreams, TurnWorker, type TurnEnd, type TurnReconciler, type TurnRun } from '../src/index.ts';
import type { WakeupQueue } from '../src/lanes/wakeup-queue.ts';
import type { EnqueueOutcome, Lease, LeaseAnswer, Renewed } from '../src/lanes/lanes.ts';
import { LogsOnDisk } from '../src/wal/log-records.ts';

/** What a test's turns do; the session is published and the end announced by the fixture. */
export type Play = (run: TurnRun) => Promise<string>;

export type BrokenRenewal = 'fails' | 'hangs';

/** The turn path over a real Redis and real files, with a stand-in for the agent. */
export class TestTurns implements AsyncDisposable {
  readonly server: TestRedis;
  readonly dataDir: string;
  readonly index: IndexStore;
  readonly tenants: Tenants;
  readonly turns: Turns;
  readonly streams: TurnStreams;
  readonly reconciler: TurnReconciler;
  readonly started: string[] = [];
  /** The answers to workers that asked for a lease. */
  readonly answers: { readonly sessionId: string; readonly kind: LeaseAnswer['kind'] }[] = [];
  /** Renewals of leases that succeeded, of all workers. */
  renewed = 0;
  play: Play = async (run) => {
    run.writer.emit({ type: 'text_delta', data: { delta: run.turn.text } });
    await run.writer.flush();
    return run.turn.text;
  };
  readonly #opened: TestCore;
  readonly #stack: AsyncDisposableStack;

  private constructor(opened: TestCore, stack: AsyncDisposableStack) {
    const { core, server, dataDir } = opened;
    this.server = server;
    this.dataDir = dataDir;
    this.index = core.index;
    this.tenants = core.tenants;
    this.turns = core.turns;
    this.reconciler = newReconciler(core);
    this.#opened = opened;
    this.#stack = stack;
    this.streams = this.reader(core.queue.lanes);
  }

  static async start(options: Pick<TestCoreOptions, 'databaseUrl' | 'dataDir' | 'redisUrl'> = {}): Promise<TestTurns> {
    await using opened = new AsyncDisposableStack();
    const core = opened.use(await TestCore.start(options));
    return new TestTurns(core, opened.move());
  }

  /** `renewals`: what becomes of the first renewals of its leases; the others succeed. */
  async worker({
    concurrency = 4,
    tenantShare,
    renewals = [],
  }: { concurrency?: number; tenantShare?: number; renewals?: readonly BrokenRenewal[] } = {}): Promise<TurnWorker> {
    const url = this.#opened.redisUrl;
    const redis = openConnection({ url, role: 'worker', log }, this.#stack);
    const subscriber = openConnection({ url, role: 'subscriber', log }, this.#stack);
    const { tenants, queue } = this.#opened.core;
    const worker = new TurnWorker({
      redis,
      subscriber,
      queue: { ...queue, lanes: new WatchedLanes({ redis, wakeupQueue: queue.wakeupQueue }, this, renewals) },
      tenants,
      log,
      capacity: { concurrency, tenantShare: tenantShare ?? concurrency },
      about: { version: 'test' },
      handlers: {
        runTurn: async (run) => await this.#runTurn(run),
        failTurn: async (run, code) => await save(run, { text: '', error: { code, message: new AppError(code).message } }),
      },
    });
    this.#stack.defer(async () => worker.stop(0));
    await worker.start();
    return worker;
  }

  /**
   * Another gateway. `refuses`: all its enqueue calls but the first ones fail, and take effect when the test releases
   * them. `role`: as a worker it waits for a Redis that stands still, as long as it takes.
   */
  async gateway({
    now = Date.now,
    refuses,
    hears = 0,
    role,
  }: { now?: () => number; refuses?: Promise<void>; hears?: number; role?: 'worker' } = {}): Promise<Turns> {
    const { redis, queue, accepted } = await this.another(role ?? 'producer');
    const lanes = refuses === undefined ? queue.lanes : new UnheardLanes(redis, refuses, hears);
    const turns = new Turns({ redis, ...queue, lanes, accepted, log, now });
    this.#stack.defer(async () => turns.stop());
    return turns;
  }

  /** As at the end of a process: its write-ahead log goes. */
  async closeLog(): Promise<void> {
    await this.#opened.core.accepted.stop();
  }

  /**
   * The objects of another process over the same Redis and files. As a worker it waits for a Redis that stands still,
   * which gives what is accepted no place in time to one that does not, and then there are files and numbers.
   */
  async another(role: 'producer' | 'worker' = 'worker'): Promise<Core> {
    return this.#opened.another(role);
  }

  /** The readers of a process: of the one that accepts turns by these lanes, or of another. */
  reader(lanes: Pick<Lanes, 'reader'> = { reader: undefined }): TurnStreams {
    const { redis } = this.#opened.core;
    const subscriber = openConnection({ url: this.#opened.redisUrl, role: 'subscriber', log }, this.#stack);
    const streams = new TurnStreams({ redis, subscriber, lanes, log });
    this.#stack.defer(async () => streams.stop());
    return streams;
  }

  /** A connection that may wait for jobs. The caller closes it. */
  blocking(): Redis {
    return connectRedis({ url: this.server.url, role: 'worker', log });
  }

  async scope(id?: string): Promise<TenantScope> {
    return this.#opened.scope(id);
  }

  /** Follows a turn to its end. @returns the SSE text */
  async read(scope: TenantScope, turnId: string, after: string | null = null): Promise<string> {
    return readToEnd(this.streams, { scope, turnId, after });
  }

  /**
   * Waits until no log has a turn. What a log still has when Redis loses its end gets its file, and waits for a worker.
   */
  async logsAreSettled(): Promise<void> {
    const logs = new LogsOnDisk(this.tenants.logsFolder);
    await eventually(async () => (await logs.turns()).length === 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reconciler.stop();
    await this.#stack.disposeAsync();
  }

  /** Saves the turn as answered, and announces nothing. */
  async publish(run: TurnRun, text: string): Promise<void> {
    await save(run, { text, error: null });
  }

  async #runTurn(run: TurnRun): Promise<TurnEnd> {
    this.started.push(run.turn.turnId);
    const session = await run.scope.sessions.load(run.turn.sessionId);
    const saved = session?.turns.find(({ id }) => id === run.turn.turnId);
    if (saved !== undefined)
      return { event: { type: 'done', data: { inputTokens: 0, outputTokens: 0, finishReason: 'stop' } }, isRepeated: true };
    return await save(run, { text: await this.play(run), error: null });
  }
}

interface Reading {
  readonly scope: TenantScope;
  readonly turnId: string;
  readonly after: string | null;
}

export async function readToEnd(streams: TurnStreams, { scope, turnId, after }: Reading): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let sse = '';
  streams.follow(scope, turnId, { after, write: (text) => void (sse += text), end: resolve });
  await promise;
  return sse;
}

class WatchedLanes extends Lanes {
  readonly #fixture: Pick<TestTurns, 'answers' | 'renewed'>;
  readonly #broken: BrokenRenewal[];

  constructor(
    { redis, wakeupQueue }: { readonly redis: Redis; readonly wakeupQueue: WakeupQueue },
    fixture: Pick<TestTurns, 'answers' | 'renewed'>,
    broken: readonly BrokenRenewal[],
  ) {
    super(redis, wakeupQueue);
    this.#fixture = fixture;
    this.#broken = [...broken];
  }

  override async lease(...given: Parameters<Lanes['lease']>): Promise<LeaseAnswer> {
    const answer = await super.lease(...given);
    this.#fixture.answers.push({ sessionId: given[0].sessionId, kind: answer.kind });
    return answer;
  }

  override async renew(leases: readonly Lease[]): Promise<Renewed> {
    if (leases.length === 0) return await super.renew(leases);
    const broken = this.#broken.shift();
    if (broken === 'hangs') return await new Promise<never>(() => undefined);
    if (broken === 'fails') throw new Error('Command timed out');
    const renewed = await super.renew(leases);
    this.#fixture.renewed += 1;
    return renewed;
  }
}

/** Lanes of a gateway whose commands time out, and whose enqueue command arrives all the same. */
class UnheardLanes extends Lanes {
  readonly #arrival: Promise<void>;
  #heard: number;

  constructor(redis: Redis, arrival: Promise<void>, heard: number) {
    super(redis);
    this.#arrival = arrival;
    this.#heard = heard;
  }

  override async enqueue(...given: Parameters<Lanes['enqueue']>): Promise<EnqueueOutcome> {
    const [, { found }] = given;
    this.#heard -= 1;
    if (this.#heard >= 0) return await super.enqueue(...given);
    if (found === 'accepted')
      background(
        this.#arrival.then(async () => await super.enqueue(...given)),
        log,
      );
    return await Promise.reject(new Error('Command timed out'));
  }
}

async function save(run: TurnRun, { text, error }: { text: string; error: TurnRecord['error'] }): Promise<TurnEnd> {
  const before = await run.scope.sessions.load(run.turn.sessionId);
  const next = withTurn(before ?? emptySession(run.turn), run, { text, error });
  await run.scope.sessions.publish(next);
  await run.scope.index.putSession(next);
  const usage = { inputTokens: 0, outputTokens: 0 };
  if (error !== null) return { event: { type: 'error', data: { ...error, retryable: false, turnId: run.turn.turnId } } };
  return { event: { type: 'done', data: { ...usage, finishReason: run.signal.aborted ? 'cancelled' : 'stop' } } };
}

function withTurn(
  session: Session,
  { turn, attempt, signal }: TurnRun,
  { text, error }: { text: string; error: TurnRecord['error'] },
): Session {
  const at = new Date().toISOString();
  const { turnId } = turn;
  const record: TurnRecord = {
    id: turnId,
    status: error === null ? (signal.aborted ? 'cancelled' : 'done') : 'failed',
    origin: turn.origin,
    acceptedAt: new Date(turn.acceptedAtMs).toISOString(),
    startedAt: at,
    firstTextAt: at,
    endedAt: at,
    attempts: attempt,
    usage: { inputTokens: 0, outputTokens: 0 },
    models: [],
    finishReason: error === null ? 'stop' : null,
    error,
    steps: [],
    requestHash: turn.requestHash,
    keyId: turn.keyId,
  };
  return {
    ...session,
    revision: session.revision + 1,
    updatedAt: at,
    messages: [
      ...session.messages,
      { id: `${turnId}-0`, turnId, at, role: 'user', text: turn.text, sent: turn.text },
      { id: `${turnId}-1`, turnId, at, role: 'assistant', text },
    ],
    turns: [...session.turns, record],
  };
}

function emptySession(turn: AcceptedTurn): Session {
  const at = new Date().toISOString();
  const { sessionId: id, agent, channel, sender } = turn;
  return {
    version: 1,
    id,
    agent,
    channel,
    sender,
    revision: 0,
    createdAt: at,
    updatedAt: at,
    title: 't',
    messageCount: 0,
    summary: null,
    messages: [],
    turns: [],
    contextTokens: null,
  };
}

export function input(text: string, facts: Partial<TurnInput> = {}): TurnInput {
  return {
    origin: 'api',
    agent: 'cs',
    authority: 'cs',
    channel: 'web',
    sender: 'ann',
    contactId: null,
    text,
    attachments: [],
    busy: 'queue',
    dedupeId: null,
    requestHash: text,
    keyId: null,
    ...facts,
  };
}

/**
 * Nothing grows old, no log and nothing in it, until the clock is released or mocks are restored, however slow the
 * machine is.
 */
export function holdClock(): { release(): void } {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
  return { release: () => clock.mockRestore() };
}

/** The events of an SSE text. */
export function parse(sse: string): { id: string; type: string; data: unknown }[] {
  return sse
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [event = '', data = '', id = ''] = block.split('\n');
      return { type: event.slice('event: '.length), data: JSON.parse(data.slice('data: '.length)), id: id.slice('id: '.length) };
    });
}

export function textDelta(delta: string): TurnEvent {
  return { type: 'text_delta', data: { delta } };
}
