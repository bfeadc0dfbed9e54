import { AppError } from '@concierge/contract';
import type { Tenants } from '@concierge/tenant';
import type { Redis } from 'ioredis';
import { forgetTenant } from './forget-tenant.ts';
import type { Turns } from './turns.ts';

/** A turn that is cancelled ends its commands and is saved, which takes seconds. */
const STOP_TIMEOUT_MS = 30_000;

export interface TenantRemovalOptions {
  readonly tenants: Pick<Tenants, 'open' | 'setSuspended' | 'delete'>;
  readonly turns: Pick<Turns, 'stopAll'>;
  readonly redis: Redis;
  readonly stopTimeoutMs?: number;
}

/**
 * Deletes a tenant whose agents may be at work. Order is part of the meaning: no new turn starts (suspended), the
 * running ones end and their sandboxes with them, then its name, its keys in Redis, its index and its files are
 * removed.
 * @returns how many turns did not end in time: what they still write is lost and reaches no tenant.
 * @throws AppError not_found; conflict, when its files are written as fast as they are removed
 */
export async function removeTenant(options: TenantRemovalOptions, id: string): Promise<{ readonly stillRunning: number }> {
  const { tenants, turns, redis, stopTimeoutMs = STOP_TIMEOUT_MS } = options;
  const scope = await tenants.open(id);
  await tenants.setSuspended(id, true).catch((error: unknown) => {
    // Settings that cannot be written keep nothing from being removed.
    if (!(error instanceof AppError)) throw error;
  });
  const stillRunning = await turns.stopAll(scope, stopTimeoutMs);
  await tenants.delete(id, async () => forgetTenant(redis, id));
  return { stillRunning };
}
