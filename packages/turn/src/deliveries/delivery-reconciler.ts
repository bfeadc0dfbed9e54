import type { Redis } from 'ioredis';
import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import type { DueQueue } from '../due/due-queue.ts';
import { Reconciler } from '../due/reconciler.ts';
import { keyOf } from '../keys.ts';

const EVERY_MS = 2000;
const SCAN_EVERY_MS = 5000;
/** Records that are kept for days are removed once a day. */
const RETENTION_EVERY_MS = 24 * 3600_000;

export interface DeliveryReconcilerOptions {
  readonly redis: Redis;
  readonly queue: DueQueue;
  readonly tenants: Pick<Tenants, 'list' | 'open' | 'outboxLanes'>;
  readonly log: Log;
}

/** Finds messages to be sent that Redis does not know: a wake-up was lost, a worker died, Redis came back empty. */
export class DeliveryReconciler extends Reconciler {
  readonly name = 'delivery reconciler';
  readonly #options: DeliveryReconcilerOptions;

  constructor(options: DeliveryReconcilerOptions) {
    super({ everyMs: EVERY_MS, log: options.log });
    this.#options = options;
  }

  override async reconcile(): Promise<void> {
    const { redis, queue } = this.#options;
    await queue.wakeLate();
    await this.share(redis, { task: keyOf.deliveryScanLock, everyMs: SCAN_EVERY_MS }, async () => {
      await this.#ofEach(async (tenantId) => this.#addMissing(tenantId));
    });
    await this.share(redis, { task: keyOf.deliveryRetentionLock, everyMs: RETENTION_EVERY_MS }, async () => {
      await this.#ofEach(async (tenantId) => this.#clearAway(tenantId));
    });
  }

  async #addMissing(tenantId: string): Promise<void> {
    const { tenants, queue } = this.#options;
    const found = (await tenants.outboxLanes(tenantId)).map((name) => ({ tenantId, name }));
    await queue.add((await queue.unknown(found)).map((key) => ({ ...key, delayMs: 0 })));
  }

  async #clearAway(tenantId: string): Promise<void> {
    const { outbox } = await this.#options.tenants.open(tenantId);
    await outbox.sweep();
    await outbox.forget();
  }

  async #ofEach(task: (tenantId: string) => Promise<void>): Promise<void> {
    const { tenants, log } = this.#options;
    for (const tenantId of await tenants.list()) {
      await task(tenantId).catch((error: unknown) => {
        log.error({ err: error, tenantId }, 'cannot look through the outbox');
      });
    }
  }
}
