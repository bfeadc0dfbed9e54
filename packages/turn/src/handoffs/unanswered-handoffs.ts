import { backoffMs, HOUR_MS, MINUTE_MS, type BackoffPlan, type HandoffView, type WidgetTeam } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import { countOpenMs, type TenantScope, type Tenants } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { Reconciler } from '../due/reconciler.ts';
import { handoffUnanswered, type WebhookEvents } from '../events/webhook-events.ts';
import { keyOf } from '../keys.ts';

const LOOK_EVERY_MS = 30_000;
/** A server that is down is not asked at every look; one that is back is, within a quarter of an hour. */
const retries: BackoffPlan = { firstMs: MINUTE_MS, maxMs: 15 * MINUTE_MS, jitter: 0.1 };

/** Lost with Redis, which is a try too early. */
const Tries = z.object({ count: z.int(), nextMs: z.number() });
type Tries = z.infer<typeof Tries>;

/** An e-mail to the owner: that a contact waits. */
export interface UnansweredEmail {
  readonly to: string;
  readonly tenantId: string;
  readonly handoff: HandoffView;
}

export interface UnansweredHandoffsOptions {
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'handoffSessions'>;
  readonly redis: Redis;
  readonly webhookEvents: Pick<WebhookEvents, 'emit'>;
  /** Undefined where the service sends no e-mail. Rejects when it was not taken; it is tried again. */
  readonly sendEmail: ((email: UnansweredEmail) => Promise<void>) | undefined;
  readonly log: Log;
  readonly now: () => number;
}

type Alert = NonNullable<WidgetTeam['alert']>;

/** Reports conversations that have waited for staff longer than their owner allows: by an event, and by e-mail. */
export class UnansweredHandoffs extends Reconciler {
  readonly name = 'unanswered handoffs';
  readonly #options: UnansweredHandoffsOptions;

  constructor(options: UnansweredHandoffsOptions) {
    super({ everyMs: LOOK_EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    await this.share(this.#options.redis, { task: keyOf.unansweredScanLock, everyMs: LOOK_EVERY_MS }, async () => this.lookAtAll());
  }

  /** One look through all tenants. */
  async lookAtAll(): Promise<void> {
    const { tenants } = this.#options;
    await this.forEachTenant(tenants, async (tenantId) => {
      // Most tenants have none: a look opens only the others.
      if ((await tenants.handoffSessions(tenantId)).length > 0) await this.#lookAt(await tenants.open(tenantId));
    });
  }

  async #lookAt(scope: TenantScope): Promise<void> {
    const team = await scope.widget.team();
    if (team?.alert === null || team === null) return;
    const { handoffs } = await scope.handoffs.paused();
    for (const handoff of handoffs) {
      if (!(await this.#isDue(scope, handoff, team))) continue;
      const tries = await this.#readTries(handoff);
      if (tries.nextMs <= this.#options.now()) await this.#report(scope, handoff, { ...team.alert, tries });
    }
    await scope.handoffs.keepAlerts(new Set(handoffs.map(({ id }) => id)));
  }

  async #isDue(scope: TenantScope, { id, sessionId, since }: HandoffView, { hours, alert }: WidgetTeam): Promise<boolean> {
    const { timezone = 'UTC' } = await scope.settings();
    const waitedMs = countOpenMs(hours, { zone: timezone, fromMs: Date.parse(since), toMs: this.#options.now() });
    if (alert === null || waitedMs < alert.afterMinutes * MINUTE_MS || (await scope.handoffs.isAlerted(id))) return false;
    const messages = (await scope.sessions.conversation(sessionId))?.messages ?? [];
    return !messages.some((message) => message.role === 'assistant' && message.by !== undefined && message.at >= since);
  }

  /** The event is one, however often this is tried; the e-mail may come twice after a crash, and is never left out. */
  async #report(
    scope: TenantScope,
    handoff: HandoffView,
    { afterMinutes, email, tries }: Alert & { readonly tries: Tries },
  ): Promise<void> {
    const { webhookEvents, redis, sendEmail, log } = this.#options;
    const { tenantId } = scope;
    try {
      await webhookEvents.emit(scope, handoffUnanswered(handoff, afterMinutes));
      if (email !== null && sendEmail === undefined) {
        log.warn({ tenantId, handoffId: handoff.id }, 'the owner wants an e-mail about an unanswered handoff, and SMTP_URL is not set');
      } else if (email !== null) await sendEmail?.({ to: email, tenantId, handoff });
      await scope.handoffs.markAlerted(handoff);
      await redis.del(keyOf.alertTries(handoff.id));
    } catch (error) {
      const waitMs = await this.#putOff(handoff, tries);
      log.warn(
        { err: error, tenantId, handoffId: handoff.id, waitMs },
        'the owner could not be told of an unanswered handoff; tried again',
      );
    }
  }

  async #readTries({ id }: HandoffView): Promise<Tries> {
    const text = await this.#options.redis.get(keyOf.alertTries(id));
    return Tries.safeParse(JSON.parse(text ?? 'null')).data ?? { count: 0, nextMs: 0 };
  }

  /** Plans the next try. @returns how long until then */
  async #putOff({ id }: HandoffView, { count }: Tries): Promise<number> {
    const waitMs = Math.round(backoffMs(count + 1, retries));
    const tries: Tries = { count: count + 1, nextMs: this.#options.now() + waitMs };
    await this.#options.redis.set(keyOf.alertTries(id), JSON.stringify(tries), 'PX', waitMs + HOUR_MS);
    return waitMs;
  }
}
