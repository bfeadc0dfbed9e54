import type { Redis } from 'ioredis';
import { background, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { keyOf } from '../keys.ts';
import { takeTask } from '../take-task.ts';
import type { DeliveryBells } from './delivery-bells.ts';
import type { DeliveryLanes } from './delivery-lanes.ts';

const SWEEP_EVERY_MS = 2000;
const LANES_PER_SWEEP = 500;
/** A look through all outboxes costs at most a twentieth of one replica's time. */
const SCAN_LOAD = 20;
const SCAN_EVERY_AT_LEAST_MS = 5000;
/** What is kept for days is cleared away once a day. */
const RETENTION_EVERY_MS = 24 * 3600_000;

export interface DeliverySweeperOptions {
  readonly redis: Redis;
  readonly lanes: DeliveryLanes;
  readonly bells: DeliveryBells;
  readonly tenants: Tenants;
  readonly log: Log;
}

/** Rings for what is to be sent and nobody has heard of: a bell that was lost, a worker that died, a Redis that came back empty. */
export class DeliverySweeper {
  readonly name = 'delivery sweeper';
  readonly #options: DeliverySweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #lastScanMs = 0;

  constructor(options: DeliverySweeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#tick();
    }, SWEEP_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#sweeping?.catch(() => undefined);
  }

  /** One round. */
  async sweep(): Promise<void> {
    const { redis, lanes, bells } = this.#options;
    for (const lane of await lanes.late(LANES_PER_SWEEP)) await bells.ringAgain(lane);
    const every = Math.max(SCAN_EVERY_AT_LEAST_MS, this.#lastScanMs * SCAN_LOAD);
    if (await takeTask(redis, keyOf.deliveryScanLock, { forMs: every })) await this.#scan();
    if (await takeTask(redis, keyOf.deliveryRetentionLock, { forMs: RETENTION_EVERY_MS })) await this.#clearAway();
  }

  #tick(): void {
    if (this.#sweeping !== undefined) return;
    this.#sweeping = this.sweep().finally(() => {
      this.#sweeping = undefined;
    });
    background(this.#sweeping, this.#options.log);
  }

  async #scan(): Promise<void> {
    const { tenants, lanes, bells } = this.#options;
    const began = performance.now();
    await this.#eachTenant(async (accountId) => {
      const found = (await tenants.outboxLanes(accountId)).map((lane) => ({ accountId, lane }));
      for (const lane of await lanes.unknown(found)) await bells.ring(lane);
    });
    this.#lastScanMs = performance.now() - began;
  }

  async #clearAway(): Promise<void> {
    await this.#eachTenant(async (accountId) => {
      const { outbox } = await this.#options.tenants.open(accountId);
      await outbox.sweep();
      await outbox.forget();
    });
  }

  async #eachTenant(look: (accountId: string) => Promise<void>): Promise<void> {
    const { tenants, log } = this.#options;
    for (const accountId of await tenants.list()) {
      await look(accountId).catch((error: unknown) => {
        log.error({ err: error, accountId }, 'cannot look through the outbox');
      });
    }
  }
}
