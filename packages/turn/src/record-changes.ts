import type { Redis } from 'ioredis';
import { RecordChange, type TellRecordChange } from '@concierge/files';
import { findSlot, handleMessages, listSlots, type Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { keyOf } from './keys.ts';

export interface RecordChangeOptions {
  readonly tenants: Pick<Tenants, 'hearRecordChange'>;
  /** A connection that only subscribes. */
  readonly subscriber: Redis;
  readonly log: Log;
}

/** Tells the processes that listen; while Redis is away none does, and files alone show what has changed. */
export function tellRecordChanges(redis: Redis): TellRecordChange {
  return (change) => {
    const slot = findSlot(redis, change.tenantId);
    if (slot.status === 'ready') slot.publish(keyOf.recordChanges, JSON.stringify(change)).catch(() => undefined);
  };
}

/** From now on, and again whenever Redis comes back, until the connection is closed. */
export function hearRecordChanges({ tenants, subscriber, log }: RecordChangeOptions): void {
  for (const slot of listSlots(subscriber)) {
    const subscribe = async (): Promise<void> => {
      await slot
        .subscribe(keyOf.recordChanges)
        .catch((error: unknown) => log.debug({ err: error }, 'cannot listen to changes of records yet'));
    };
    handleMessages(slot, keyOf.recordChanges, (_rest, payload) => {
      // What another version tells in another way is seen in the files.
      const change = parseChange(payload);
      if (change !== undefined) tenants.hearRecordChange(change);
    });
    slot.on('ready', () => void subscribe());
    if (slot.status === 'ready') void subscribe();
  }
}

function parseChange(payload: string): RecordChange | undefined {
  try {
    return RecordChange.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}
