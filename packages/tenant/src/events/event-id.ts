import { createHash } from 'node:crypto';
import { HOUR_MS, EventEndpointId, EventId } from '@concierge/contract';

const TIME_DIGITS = 12;
const ENDPOINT_DIGITS = 12;
/** As the file system has it: `2026-11-21T20`. */
export const hourNames = /^\d{4}-\d{2}-\d{2}T\d{2}$/u;

export interface WebhookEventKey {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly type: string;
  /** Names what happened among all of its type. */
  readonly key: string;
  readonly atMs: number;
}

/** The same webhook event has the same id, however often and by whichever process it is reported. */
export function eventIdOf({ tenantId, endpointId, type, key, atMs }: WebhookEventKey): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(['event', tenantId, endpointId, type, key]))
    .digest('hex');
  const time = atMs.toString(16).padStart(TIME_DIGITS, '0');
  return EventId.parse(`e_${time}${endpointId.slice('ep_'.length)}${digest.slice(0, 16)}`);
}

export function endpointIdOfEvent(eventId: string): string {
  const from = 'e_'.length + TIME_DIGITS;
  return EventEndpointId.parse(`ep_${eventId.slice(from, from + ENDPOINT_DIGITS)}`);
}

/** When it happened. */
export function timeOfEvent(eventId: string): number {
  return Number.parseInt(eventId.slice('e_'.length, 'e_'.length + TIME_DIGITS), 16);
}

/** The folder of all events of that hour. */
export function hourOf(atMs: number): string {
  return new Date(Math.floor(atMs / HOUR_MS) * HOUR_MS).toISOString().slice(0, 'yyyy-mm-ddThh'.length);
}

/** When the hour of this folder ended. */
export function endOfHour(hour: string): number {
  return Date.parse(`${hour}:00:00Z`) + HOUR_MS;
}
