import type { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript, type Log } from '@concierge/runtime';
import { addJobs, jobOptions, openWakeupQueue, openWakeupWorker, toPriority } from '../lanes/wakeup-queue.ts';
import { keyOf, queuePrefix } from '../keys.ts';

const scripts = {
  add: new RedisScript(new URL('due-add.lua', import.meta.url)),
  complete: new RedisScript(new URL('due-complete.lua', import.meta.url)),
  claim: new RedisScript(new URL('due-claim.lua', import.meta.url)),
  plan: new RedisScript(new URL('due-plan.lua', import.meta.url)),
};

/** A claimant that has not kept its claim for this long has lost it. */
const CLAIM_MS = 10_000;
/** A wake-up that is this late was lost, or its worker died. */
const LATE_MS = 3000;
const LATE_AT_ONCE = 500;
/** A job id is used again, so it must be free when its job has ended. */
const forgotten = { removeOnComplete: true, removeOnFail: true } as const;

/** One piece of due work: a schedule, the outbox of a conversation, an endpoint. */
export interface DueKey {
  readonly tenantId: string;
  readonly name: string;
}

/** The right to process a member, for a while. `number` only rises: a later claim has a higher one. */
export interface DueClaim extends DueKey {
  readonly number: number;
}

export interface DueMember extends DueKey {
  readonly delayMs: number;
}

/** The payload of a wake-up job: the work itself stands in files. */
const DueJob = z.object({ tenantId: z.string(), name: z.string() });

const Wakeup = z.tuple([z.string(), z.string(), z.number(), z.number()]);
const AddReply = z.array(Wakeup);
const ClaimReply = z.tuple([z.array(z.tuple([z.string(), z.number()])), z.number()]);
const PlanReply = z.union([Wakeup, z.tuple([z.string()]), z.tuple([])]);

export interface DueQueueOptions {
  readonly redis: Redis;
  /** Names the due set, and the BullMQ queue of its wake-ups. */
  readonly kind: string;
  readonly log: Log;
  /** False: no worker is woken; workers poll for members. */
  readonly wakes?: boolean;
  /**
   * Set where times are times of day: the clock by which they are due. Otherwise times are durations, counted in
   * service time.
   */
  readonly clock?: () => number;
  readonly claimMs?: number;
}

/**
 * Work to be done at or after a time, each piece by one process at a time. A member is: (unknown) → due at a time →
 * claimed → due again, or unknown. A claim expires when its process dies. All of it can be thrown away: the truth
 * stands in files, and a reconciler adds what is missing here.
 */
export class DueQueue {
  readonly kind: string;
  /** The queue of wake-ups, for dashboards; none where workers poll. */
  readonly queues: readonly Queue[];
  readonly #options: DueQueueOptions;

  constructor(options: DueQueueOptions) {
    const { redis, kind, log, wakes = true } = options;
    this.#options = options;
    this.kind = kind;
    this.queues = wakes ? [openWakeupQueue(kind, { redis, log })] : [];
  }

  /** Answers wake-ups, `concurrency` at once, once it runs; undefined where workers poll. The caller closes it. */
  openWorker(concurrency: number, answer: (key: DueKey) => Promise<void>): Worker | undefined {
    if (this.queues.length === 0) return undefined;
    const { redis, log } = this.#options;
    return openWakeupWorker(this.kind, { redis, concurrency, log, schema: DueJob, answer });
  }

  /**
   * Plans members after their delays; an earlier plan stays. `onlyNew`: members that wait for their time stay as they
   * are.
   */
  async add(members: readonly DueMember[], { onlyNew = false } = {}): Promise<void> {
    if (members.length === 0) return;
    await this.#wake(AddReply.parse(await this.#run('add', { members: members.map((member) => this.#timed(member)), onlyNew })));
  }

  /**
   * Adds all members at once, atomically with a flag: a Redis that is emptied meanwhile has all of them, or no flag.
   */
  async addAll(keys: readonly DueKey[]): Promise<void> {
    const members = keys.map((key) => this.#timed({ ...key, delayMs: 0 }));
    await this.#wake(AddReply.parse(await this.#run('add', { members, flag: keyOf.dueComplete(this.kind) })));
  }

  /** Finds the given members that are neither planned nor claimed. */
  async unknown(keys: readonly DueKey[]): Promise<DueKey[]> {
    if (keys.length === 0) return [];
    const due = keyOf.dueWork(this.kind);
    const members = keys.map((key) => toMember(key));
    const [waiting, claimed] = await Promise.all([due, `${due}:claimed`].map(async (set) => this.#options.redis.zmscore(set, ...members)));
    return keys.filter((_key, index) => waiting?.[index] == null && claimed?.[index] == null);
  }

  /** Whether `addAll` was called since this Redis was started, or emptied: one that was killed may lack a second. */
  async isComplete(): Promise<boolean> {
    return (await scripts.complete.run(this.#options.redis, [keyOf.dueComplete(this.kind)], [])) === 1;
  }

  /**
   * Claims members that are due or whose claimant is gone, and returns how long until the next; null when none is
   * known.
   */
  async claim(limit: number, { lateMs = 0 } = {}): Promise<{ readonly claims: DueClaim[]; readonly nextInMs: number | null }> {
    const [claims, nextInMs] = ClaimReply.parse(await this.#run('claim', { limit, lateMs, claimMs: this.#claimMs }));
    return { claims: claims.map(([member, number]) => ({ ...toKey(member), number })), nextInMs: nextInMs < 0 ? null : nextInMs };
  }

  /** undefined when the member is not due, or claimed by another process. */
  async claimOne(key: DueKey): Promise<DueClaim | undefined> {
    const [[claim]] = ClaimReply.parse(await this.#run('claim', { member: toMember(key), claimMs: this.#claimMs }));
    return claim && { ...key, number: claim[1] };
  }

  /** False when the claim has passed to another process. */
  async keep(claim: DueClaim): Promise<boolean> {
    return (await this.#plan(claim, { claimMs: this.#claimMs })).length > 0;
  }

  /**
   * Releases a claim and plans the next time, null for never. A time that was added meanwhile counts. False when the
   * claim had passed to another process.
   */
  async plan(claim: DueClaim, delayMs: number | null): Promise<boolean> {
    const { tenantId, name } = claim;
    const { member: _member, ...time } = delayMs === null ? { member: '' } : this.#timed({ tenantId, name, delayMs });
    const reply = await this.#plan(claim, time);
    if (reply.length === 4) await this.#wake([reply]);
    return reply.length > 0;
  }

  /** Wakes workers for overdue members: the wake-up was lost, or the claimant is gone. */
  async wakeLate(): Promise<void> {
    const { claims } = await this.claim(LATE_AT_ONCE, { lateMs: LATE_MS });
    for (const claim of claims) {
      const reply = await this.#plan(claim, { delayMs: 0 });
      if (reply.length === 4) await this.#wake([reply], 'again');
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.queues.map(async (queue) => queue.close()));
  }

  get #claimMs(): number {
    return this.#options.claimMs ?? CLAIM_MS;
  }

  /** "At once" is before every clock, where times are due by the clocks of several machines. */
  #timed({ delayMs, ...key }: DueMember): { readonly member: string; readonly delayMs?: number; readonly at?: number } {
    const { clock } = this.#options;
    if (clock === undefined) return { member: toMember(key), delayMs };
    return { member: toMember(key), at: delayMs === 0 ? 0 : clock() + delayMs };
  }

  async #plan(claim: DueClaim, then: object): Promise<z.infer<typeof PlanReply>> {
    return PlanReply.parse(await this.#run('plan', { member: toMember(claim), claim: claim.number, ...then }));
  }

  async #run(name: 'add' | 'claim' | 'plan', given: object): Promise<unknown> {
    const { redis, clock } = this.#options;
    const facts = { ...given, ...(clock !== undefined && { nowMs: clock() }), ...(this.queues.length > 0 && { kind: this.kind }) };
    return scripts[name].run(redis, [queuePrefix, keyOf.dueWork(this.kind)], [JSON.stringify(facts)]);
  }

  /** The larger a tenant's backlog, the later each piece is done. Another wake-up for the same time adds nothing. */
  async #wake(wakeups: readonly z.infer<typeof Wakeup>[], again?: 'again'): Promise<void> {
    const [queue] = this.queues;
    if (queue === undefined || wakeups.length === 0) return;
    const jobs = wakeups.map(([member, at, delay, backlog]) => {
      const key = toKey(member);
      const jobId = `${key.tenantId}.${key.name}.${again ?? at}`;
      const opts = { ...jobOptions, ...(again !== undefined && forgotten), jobId, delay, priority: toPriority(backlog) };
      return { name: this.kind, data: key, opts };
    });
    await addJobs(queue, jobs);
  }
}

function toMember({ tenantId, name }: DueKey): string {
  return `${tenantId}/${name}`;
}

function toKey(member: string): DueKey {
  const slash = member.indexOf('/');
  return { tenantId: member.slice(0, slash), name: member.slice(slash + 1) };
}
