import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Schedule, type Session, type TurnRecord } from '@concierge/contract';
import { hashParts, newMetrics } from '@concierge/runtime';
import type { Tenants, TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log, type TestRedis } from '@concierge/testing';
import { TestCore } from '@concierge/testing/core';
import { Budgets, LogsOnDisk } from '@concierge/turn';
import { ScheduleRunner, ScheduleMetrics } from '../src/schedules/schedule-runner.ts';
import { ScheduleClock } from '../src/schedules/schedule-clock.ts';

/** Replicas of the service over a real Redis and real files, with a clock that the test sets. */
export class TestCron implements AsyncDisposable {
  readonly redis: TestRedis;
  readonly tenants: Tenants;
  /** The metrics of all replicas together: each adds to the same ones. */
  readonly registry = newMetrics('cron');
  nowMs = Date.parse('2027-03-01T00:00:00Z');
  readonly #metrics = new ScheduleMetrics(this.registry);
  readonly #opened: TestCore;
  #schedules = 0;

  private constructor(opened: TestCore) {
    this.redis = opened.server;
    this.tenants = opened.core.tenants;
    this.#opened = opened;
  }

  static async start(): Promise<TestCron> {
    const cron = new TestCron(await TestCore.start());
    await cron.scope();
    return cron;
  }

  /** The objects of so many processes of the service, which share only files and Redis. */
  async replicas(count: number): Promise<ScheduleClock[]> {
    return Promise.all(Array.from({ length: count }, async () => this.replica()));
  }

  async scope(): Promise<TenantScope> {
    return this.#opened.scope();
  }

  at(text: string): void {
    this.nowMs = Date.parse(text);
  }

  /** A definition as the test's clock has it: the store's own clock is the machine's. */
  async schedule(more: Partial<Schedule>): Promise<Schedule> {
    this.#schedules += 1;
    const id = `s_${String(this.#schedules).padStart(32, '0')}`;
    const at = new Date(this.nowMs).toISOString();
    const facts = { name: 'Report', agent: 'admin', message: 'Go.', deliver: null, missed: 'run_once', overlap: 'skip', jitterSeconds: 0 };
    const made = { createdBy: { kind: 'operator' }, createdAt: at, updatedAt: at, countsFrom: at };
    const rest = { schedule: { every: '1h' }, alert: null, enabled: true, authority: 'admin', tools: null };
    const schedule = Schedule.parse({ version: 1, id, ...facts, ...rest, ...made, ...more });
    await this.write(schedule);
    return schedule;
  }

  async write(schedule: Schedule): Promise<void> {
    const folder = join((await this.scope()).root, 'cron');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${schedule.id}.json`), JSON.stringify(schedule));
  }

  /** Runs of a schedule, the oldest first, as `01:00 ran done`. */
  async listRuns({ id }: Pick<Schedule, 'id'>): Promise<string[]> {
    const runs = await (await this.scope()).schedules.runs.list(id, 200);
    return runs
      .toReversed()
      .map(({ scheduledAt, outcome, turn }) => [scheduledAt.slice(11, 16), outcome, ...(turn === null ? [] : [turn.status])].join(' '));
  }

  /** Another turn of the tenant that has just ended and took so many tokens. */
  async spend(tokens: number): Promise<void> {
    const scope = await this.scope();
    this.#schedules += 1;
    const usage = { model: 'test/one', calls: 1, inputTokens: tokens, outputTokens: 0, cachedInputTokens: 0, costUsd: null };
    const [name, at] = [`spent-${String(this.#schedules)}`, new Date(this.nowMs).toISOString()];
    const facts = { status: 'done', origin: 'api', acceptedAt: at, startedAt: at, firstTextAt: null, endedAt: at } as const;
    const ended = { finishReason: 'stop', error: null, requestHash: 'f'.repeat(64), keyId: null } as const;
    const record: TurnRecord = {
      id: name,
      ...facts,
      attempts: 1,
      usage: { inputTokens: tokens, outputTokens: 0 },
      models: [usage],
      steps: [],
      ...ended,
    };
    const id = hashParts([name], { separator: 'json', digits: 32 });
    const kept = { version: 1, revision: 1, createdAt: at, updatedAt: at, title: 't', messageCount: 0, summary: null } as const;
    const owner = { agent: 'admin', channel: 'web', sender: null } as const;
    const session: Session = { id, ...kept, ...owner, messages: [], turns: [record], contextTokens: null };
    await scope.sessions.publish(session);
    await scope.index.putSession(session);
  }

  /** Ends every accepted turn as a worker leaves it; how many there were. */
  async answerAll(end: { readonly reply: string } | { readonly error: string } = { reply: 'Done.' }): Promise<number> {
    const scope = await this.scope();
    const turnIds = await scope.inbox.turnIds();
    for (const turnId of turnIds) await this.#answer(scope, turnId, end);
    const logs = new LogsOnDisk(this.tenants.logsFolder);
    await eventually(async () => (await logs.turns()).length === 0);
    return turnIds.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened[Symbol.asyncDispose]();
  }

  async #answer(scope: TenantScope, turnId: string, end: { readonly reply: string } | { readonly error: string }): Promise<void> {
    const turn = await scope.inbox.read(turnId);
    if (turn === undefined) return;
    const at = new Date(turn.acceptedAtMs).toISOString();
    const failed = 'error' in end;
    const record: TurnRecord = {
      id: turnId,
      status: failed ? 'failed' : 'done',
      origin: turn.origin,
      acceptedAt: at,
      startedAt: at,
      firstTextAt: null,
      endedAt: at,
      attempts: 1,
      usage: { inputTokens: 0, outputTokens: 0 },
      models: [],
      finishReason: failed ? null : 'stop',
      error: failed ? { code: 'turn_crashed', message: end.error } : null,
      steps: [],
      requestHash: turn.requestHash,
      keyId: null,
    };
    const session: Session = {
      version: 1,
      id: turn.sessionId,
      agent: turn.agent,
      channel: 'web',
      sender: turn.sender,
      revision: 1,
      createdAt: at,
      updatedAt: at,
      title: 't',
      messageCount: 2,
      summary: null,
      messages: [
        { id: `${turnId}-0`, turnId, at, role: 'user', text: turn.text, sent: turn.text },
        ...(failed ? [] : [{ id: `${turnId}-1`, turnId, at, role: 'assistant' as const, text: end.reply }]),
      ],
      turns: [record],
      contextTokens: null,
    };
    await scope.sessions.publish(session);
    await scope.inbox.remove(turnId);
    const { redis } = this.#opened.core;
    await redis.hset(`concierge:{q0}:turn:${turnId}`, 'state', record.status);
    await redis.hdel(`concierge:{q0}:logged:${scope.tenantId}`, turnId);
  }

  async replica(): Promise<ScheduleClock> {
    const { redis, tenants, turns, events } = await this.#opened.another();
    const now = (): number => this.nowMs;
    const budgets = new Budgets({ redis, webhookEvents: events.outgoing, log, now });
    const runner = new ScheduleRunner({ turns, webhookEvents: events.outgoing, budgets, metrics: this.#metrics, log, now });
    return new ScheduleClock({ redis, tenants, runner, log, now });
  }
}
