import type { JobsOptions, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { RedisScript, type Log, type ScriptReply } from '@concierge/runtime';
import { wakeupOptions, keptForDashboards, openWakeupQueue } from '../lanes/wakeup-jobs.ts';
import { keyOf, queuePrefix } from '../keys.ts';

const scripts = {
  add: new RedisScript(new URL('due-add.lua', import.meta.url)),
  claim: new RedisScript(new URL('due-claim.lua', import.meta.url)),
  plan: new RedisScript(new URL('due-plan.lua', import.meta.url)),
};

/** A claimant that has not kept its claim for this long has lost it. */
const CLAIM_MS = 10_000;
/** A wake-up that is this late was lost, or its worker was. */
const LATE_MS = 3000;
const LATE_AT_ONCE = 500;
/** BullMQ's largest priority is 2^21; all jobs carry one, since none would go before them all. */
const MAX_PRIORITY = 1000;
const jobOptions = wakeupOptions(keptForDashboards);
/** An id that is used again must be free when its job has ended. */
const forgotten = { removeOnComplete: true, removeOnFail: true } as const;

/** One piece of due work: a schedule, the outbox of a conversation, an endpoint. */
export interface DueKey {
  readonly tenantId: string;
  readonly name: string;
}

/** The right to look at a member, for a while. `number` only rises: a later claim has a higher one. */
export interface DueClaim extends DueKey {
  readonly number: number;
}

export interface DueMember extends DueKey {
  readonly delayMs: number;
}

/** What a job of a wake-up names: which work there is stands in files. */
export const DueJob = z.object({ tenantId: z.string(), name: z.string() });

const Wakeup = z.tuple([z.string(), z.string(), z.number(), z.number()]);
const AddReply = z.array(Wakeup);
const ClaimReply = z.tuple([z.array(z.tuple([z.string(), z.number()])), z.number()]);
const PlanReply = z.union([Wakeup, z.tuple([z.string()]), z.tuple([])]);

export interface DueQueueOptions {
  readonly redis: Redis;
  /** Names the due set, and the BullMQ queue of its wake-ups. */
  readonly kind: string;
  readonly log: Log;
  /** False: nobody is woken; members are found by whoever polls. */
  readonly wakes?: boolean;
  /** Where times are times of day: the clock by which they are due. Otherwise they are durations, counted in service time. */
  readonly clock?: () => number;
  readonly claimMs?: number;
}

/**
 * What is to be done at or after a time, each piece by one process at a time. A member is: (unknown) → due at a time → claimed → due again, or unknown. A claim
 * ends by itself when its process does. All of it can be thrown away: what is true stands in files, and a reconciler adds what is missing here.
 */
export class DueQueue {
  readonly kind: string;
  /** Of the wake-ups, for dashboards; none where nobody is woken. */
  readonly queues: readonly Queue[];
  readonly #options: DueQueueOptions;

  constructor(options: DueQueueOptions) {
    const { redis, kind, log, wakes = true } = options;
    this.#options = options;
    this.kind = kind;
    this.queues = wakes ? [openWakeupQueue(kind, { redis, kept: keptForDashboards, log })] : [];
  }

  /** To be looked at after their delays, or sooner where that is planned. `onlyNew`: those that wait for their time stay as they are. */
  async add(members: readonly DueMember[], { onlyNew = false } = {}): Promise<void> {
    if (members.length === 0) return;
    await this.#wake(AddReply.parse(await this.#run('add', { members: members.map((member) => this.#timed(member)), onlyNew })));
  }

  /** All there are, at once and in one step with a mark: a Redis that is emptied meanwhile has all of them, or no mark. */
  async addAll(keys: readonly DueKey[]): Promise<void> {
    const members = keys.map((key) => this.#timed({ ...key, delayMs: 0 }));
    await this.#wake(AddReply.parse(await this.#run('add', { members, mark: keyOf.dueComplete(this.kind) })));
  }

  /** Of these members those that are neither due nor claimed. */
  async unknown(keys: readonly DueKey[]): Promise<DueKey[]> {
    if (keys.length === 0) return [];
    const due = keyOf.dueWork(this.kind);
    const members = keys.map((key) => memberOf(key));
    const [waiting, claimed] = await Promise.all([due, `${due}:claimed`].map(async (set) => this.#options.redis.zmscore(set, ...members)));
    return keys.filter((_key, index) => waiting?.[index] == null && claimed?.[index] == null);
  }

  /** Whether `addAll` was called since Redis was empty. */
  async isComplete(): Promise<boolean> {
    return (await this.#options.redis.exists(keyOf.dueComplete(this.kind))) === 1;
  }

  /** Of those that are due, or whose claimant is gone; and how long until there is another, null when none is known. */
  async claim(limit: number, { lateMs = 0 } = {}): Promise<{ readonly claims: DueClaim[]; readonly nextInMs: number | null }> {
    const [claims, nextInMs] = ClaimReply.parse(await this.#run('claim', { limit, lateMs, claimMs: this.#claimMs }));
    return { claims: claims.map(([member, number]) => ({ ...keyOfMember(member), number })), nextInMs: nextInMs < 0 ? null : nextInMs };
  }

  /** undefined when it is not due, or another's. */
  async claimOne(key: DueKey): Promise<DueClaim | undefined> {
    const [[claim]] = ClaimReply.parse(await this.#run('claim', { member: memberOf(key), claimMs: this.#claimMs }));
    return claim && { ...key, number: claim[1] };
  }

  /** False when it has passed to another. */
  async keep(claim: DueClaim): Promise<boolean> {
    return (await this.#plan(claim, { claimMs: this.#claimMs })).length > 0;
  }

  /** Gives a claim back: when to look again, null for never. What was added meanwhile counts. False when it had passed to another. */
  async plan(claim: DueClaim, delayMs: number | null): Promise<boolean> {
    const { tenantId, name } = claim;
    const { member: _member, ...time } = delayMs === null ? { member: '' } : this.#timed({ tenantId, name, delayMs });
    const reply = await this.#plan(claim, time);
    if (reply.length === 4) await this.#wake([reply]);
    return reply.length > 0;
  }

  /** Wakes for what is overdue: its wake-up was lost, or its claimant is gone. */
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

  /** At once is before every clock, where times are due by those of several machines. */
  #timed({ delayMs, ...key }: DueMember): { readonly member: string; readonly delayMs?: number; readonly at?: number } {
    const { clock } = this.#options;
    if (clock === undefined) return { member: memberOf(key), delayMs };
    return { member: memberOf(key), at: delayMs === 0 ? 0 : clock() + delayMs };
  }

  async #plan(claim: DueClaim, then: object): Promise<z.infer<typeof PlanReply>> {
    return PlanReply.parse(await this.#run('plan', { member: memberOf(claim), claim: claim.number, ...then }));
  }

  async #run(name: keyof typeof scripts, given: object): Promise<ScriptReply> {
    const { redis, clock } = this.#options;
    const facts = { ...given, ...(clock !== undefined && { nowMs: clock() }), ...(this.queues.length > 0 && { kind: this.kind }) };
    return scripts[name].run(redis, [queuePrefix, keyOf.dueWork(this.kind)], [JSON.stringify(facts)]);
  }

  /** The more a tenant has to be done, the later each of it is done. Another wake-up for the same time adds nothing. */
  async #wake(wakeups: readonly z.infer<typeof Wakeup>[], again?: 'again'): Promise<void> {
    const [queue] = this.queues;
    if (queue === undefined || wakeups.length === 0) return;
    const jobs = wakeups.map(([member, at, delay, backlog]) => {
      const key = keyOfMember(member);
      const jobId = `${key.tenantId}.${key.name}.${again ?? at}`;
      const priority = Math.min(Math.max(backlog, 1), MAX_PRIORITY);
      const opts: JobsOptions & { jobId: string } = { ...jobOptions, ...(again !== undefined && forgotten), jobId, delay, priority };
      return { name: this.kind, data: key, opts };
    });
    const [first] = jobs;
    // Nearly always it is one, which needs no transaction.
    if (jobs.length === 1 && first !== undefined) await queue.add(first.name, first.data, first.opts);
    else await queue.addBulk(jobs);
  }
}

function memberOf({ tenantId, name }: DueKey): string {
  return `${tenantId}/${name}`;
}

function keyOfMember(member: string): DueKey {
  const slash = member.indexOf('/');
  return { tenantId: member.slice(0, slash), name: member.slice(slash + 1) };
}
