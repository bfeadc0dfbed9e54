import { rename, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  DAY_MS,
  HOUR_MS,
  AppError,
  EventId,
  EventRecord,
  limits,
  type EventStatus,
  type EventView,
  EventEndpointId,
} from '@concierge/contract';
import {
  ignoreMissing,
  isSystemError,
  keepFolders,
  lstatIfThere,
  makeStoreFolder,
  namesIn,
  RecordFolder,
  unlessLater,
  type FolderSync,
} from '@concierge/files';
import { failpoint, type Log, hashParts } from '@concierge/runtime';

const TIME_DIGITS = 12;
const ENDPOINT_DIGITS = 12;
/** As the file system has it: `2026-11-21T20`. */
const hourNames = /^\d{4}-\d{2}-\d{2}T\d{2}$/u;

interface WebhookEventKey {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly type: string;
  /** Names what happened among all of its type. */
  readonly key: string;
  readonly atMs: number;
}

/** The same webhook event has the same id, however often and by whichever process it is reported. */
export function deriveEventId({ tenantId, endpointId, type, key, atMs }: WebhookEventKey): string {
  const digits = hashParts(['event', tenantId, endpointId, type, key], { separator: 'json', digits: 16 });
  const time = atMs.toString(16).padStart(TIME_DIGITS, '0');
  return EventId.parse(`e_${time}${endpointId.slice('ep_'.length)}${digits}`);
}

export function endpointIdOfEvent(eventId: string): string {
  const from = 'e_'.length + TIME_DIGITS;
  return EventEndpointId.parse(`ep_${eventId.slice(from, from + ENDPOINT_DIGITS)}`);
}

/** When it happened. */
function timeOfEvent(eventId: string): number {
  return Number.parseInt(eventId.slice('e_'.length, 'e_'.length + TIME_DIGITS), 16);
}

/** The folder of all events of that hour. */
function toEventHour(atMs: number): string {
  return new Date(Math.floor(atMs / HOUR_MS) * HOUR_MS).toISOString().slice(0, 'yyyy-mm-ddThh'.length);
}

/** When the hour of this folder ended. */
function endOfHour(hour: string): number {
  return Date.parse(`${hour}:00:00Z`) + HOUR_MS;
}

const names = /^e_[0-9a-f]{40}$/u;
const statuses: readonly EventStatus[] = ['waiting', 'sent', 'dead'];
/** Files that one page reads at most, whether they are what was asked for or not. */
const READ_PER_PAGE = 1000;
/** A folder that is empty is cleared away at most once between two of these. */
const MOVES = 3;
const keptDays = { sent: limits.eventsSentKeptDays, dead: limits.eventsDeadKeptDays } as const;

export interface EventFilesOptions {
  readonly tenantId: string;
  /** tenants/<id>/events */
  readonly folder: string;
  readonly folders: FolderSync;
  readonly log: Log;
  readonly now?: (() => number) | undefined;
}

export interface EventsQuery {
  readonly endpoint?: string | undefined;
  readonly status?: EventStatus | undefined;
  readonly type?: string | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface FoundEvent {
  readonly status: EventStatus;
  readonly event: EventRecord;
}

/**
 * Events as files, by what has become of them and by the hour in which they happened: no folder grows without end, and
 * none is read that a page does not need.
 *
 * Waiting → sent or dead, dead → waiting. A move is two steps, the file as it will be and its new place: `outcome` in a
 * waiting file means that only the second one is missing.
 */
export class EventFiles {
  readonly #options: EventFilesOptions;

  constructor(options: EventFilesOptions) {
    this.#options = options;
  }

  /** On disk when it returns; does nothing for one that is known, whatever has become of it. */
  async keep(event: EventRecord): Promise<void> {
    if (await this.#hasEnded(event.id)) return;
    const records = this.#records('waiting', hourOfEvent(event.id));
    try {
      await records.create(event.id, event);
    } catch (error) {
      // An empty folder may be cleared away between its making and its first file.
      if (!isSystemError(error, 'ENOENT')) throw error;
      await records.create(event.id, event);
    }
  }

  /**
   * One that waits to be sent. What was kept once more while it was moved stands in two places: it has been sent, or
   * given up, and does not wait.
   */
  async waiting(id: string): Promise<EventRecord | undefined> {
    const event = await this.#read('waiting', id);
    if (event === undefined || !(await this.#hasEnded(id))) return event;
    await this.#records('waiting', hourOfEvent(id)).remove(id);
    return undefined;
  }

  async find(id: string): Promise<FoundEvent | undefined> {
    for (const status of statuses) {
      const event = await this.#read(status, id);
      if (event !== undefined) return { status, event };
    }
    return undefined;
  }

  /** After a try. False when it was erased, or settled by another process, while it was being sent: it stays so. */
  async put(event: EventRecord): Promise<boolean> {
    const records = this.#records('waiting', hourOfEvent(event.id));
    if (!(await records.has(event.id))) return false;
    await records.put(event.id, event);
    return true;
  }

  /** Nothing more is to come. */
  async settle(event: EventRecord & { readonly outcome: 'sent' | 'dead' }): Promise<void> {
    if (!(await this.put(event))) return;
    await failpoint('events.before-move');
    await this.#move(event.id, 'waiting', event.outcome);
  }

  /** The outcome of an event whose process settled it and died before it moved the file. */
  async finishMove(id: string, outcome: 'sent' | 'dead'): Promise<void> {
    await this.#move(id, 'waiting', outcome);
  }

  /** A dead letter waits again, with all its tries before it. @throws AppError not_found, conflict */
  async revive(id: string): Promise<EventRecord> {
    const dead = await this.#read('dead', id);
    if (dead === undefined) {
      if ((await this.find(id)) === undefined) throw noSuchEvent();
      throw new AppError('conflict', 'Only a dead letter can be sent anew.');
    }
    const event: EventRecord = { ...dead, tries: 0, outcome: null, reason: null, nextTryAt: new Date(this.#nowMs()).toISOString() };
    await this.#records('dead', hourOfEvent(id)).put(id, event);
    await this.#move(id, 'dead', 'waiting');
    return event;
  }

  /** Ids of what waits, the oldest first. Reads no file. */
  async waitingIds(): Promise<string[]> {
    return this.#listIds('waiting', () => true);
  }

  /** Ids of an endpoint's dead letters that happened since then, the oldest first. */
  async listDeadEvents(endpointId: string, sinceMs: number): Promise<string[]> {
    const ids = await this.#listIds('dead', (hour) => endOfHour(hour) > sinceMs);
    return ids.filter((id) => timeOfEvent(id) >= sinceMs && endpointIdOfEvent(id) === endpointId);
  }

  /** The newest first. @throws AppError invalid_request for a cursor that is none */
  async list({ endpoint, status, type, limit, cursor }: EventsQuery): Promise<{ items: EventView[]; nextCursor: string | null }> {
    const wanted = status === undefined ? statuses : [status];
    const items: EventView[] = [];
    let read = 0;
    for await (const [id, place] of this.#placesBefore(parseEventCursor(cursor), wanted)) {
      if (endpoint !== undefined && endpointIdOfEvent(id) !== endpoint) continue;
      const event = await unlessLater(this.#read(place, id));
      read += 1;
      if (event !== undefined && (type === undefined || event.type === type)) items.push(toEventView({ status: place, event }));
      if (items.length >= limit || read >= READ_PER_PAGE) return { items, nextCursor: id };
    }
    return { items, nextCursor: null };
  }

  /** Clears away what has been kept long enough, what writers left that died, and folders that have become empty. */
  async sweep(): Promise<void> {
    const nowMs = this.#nowMs();
    for (const status of statuses) {
      for (const hour of await this.#hours([status])) {
        if (endOfHour(hour) > nowMs) continue;
        await this.#records(status, hour).sweep();
        if (status !== 'waiting') await this.#forget(status, hour, nowMs - keptDays[status] * DAY_MS);
        await rmdir(join(this.#options.folder, status, hour)).catch(ignoreFull);
      }
    }
  }

  /** Removes events, whatever has become of them; how many. */
  async erase(isMeant: (event: EventRecord) => boolean): Promise<number> {
    let erased = 0;
    for (const status of statuses) {
      for (const id of await this.#listIds(status, () => true)) {
        const event = await unlessLater(this.#read(status, id));
        if (event !== undefined && isMeant(event)) erased += Number(await this.#records(status, hourOfEvent(id)).remove(id));
      }
    }
    return erased;
  }

  async #hasEnded(id: string): Promise<boolean> {
    for (const status of ['sent', 'dead'] as const) if ((await lstatIfThere(this.#toEventPath(status, id))) !== undefined) return true;
    return false;
  }

  async #forget(status: 'sent' | 'dead', hour: string, beforeMs: number): Promise<void> {
    if (endOfHour(hour) > beforeMs) return;
    const records = this.#records(status, hour);
    for (const id of await records.names()) {
      // What was sent anew is kept as long as what happened that day.
      const facts = await stat(this.#toEventPath(status, id)).catch(() => undefined);
      if (facts !== undefined && facts.mtimeMs <= beforeMs) await records.remove(id);
    }
  }

  async #move(id: string, from: EventStatus, to: EventStatus): Promise<void> {
    const { folder, folders } = this.#options;
    const [source, target] = [this.#toEventPath(from, id), this.#toEventPath(to, id)];
    // Again when the folder, which was empty, was cleared away before the file was in it.
    for (let attempt = 1; attempt <= MOVES && (await lstatIfThere(source)) !== undefined; attempt += 1) {
      await keepFolders(await makeStoreFolder(dirname(target), { store: folder }), folders);
      await ignoreMissing(rename(source, target));
    }
    for (const path of [target, source]) await ignoreMissing(folders.sync(dirname(path)));
  }

  async #read(status: EventStatus, id: string): Promise<EventRecord | undefined> {
    if (!names.test(id)) return undefined;
    const event = await this.#records(status, hourOfEvent(id)).find(id);
    return event?.id === id ? event : undefined;
  }

  async #listIds(status: EventStatus, isWanted: (hour: string) => boolean): Promise<string[]> {
    const ids: string[] = [];
    for (const hour of (await this.#hours([status])).toReversed()) {
      if (isWanted(hour)) ids.push(...(await this.#records(status, hour).names()));
    }
    return ids;
  }

  /** The newest first. */
  async #hours(wanted: readonly EventStatus[]): Promise<string[]> {
    const found = await Promise.all(wanted.map(async (status) => namesIn(join(this.#options.folder, status))));
    return [...new Set(found.flat())]
      .filter((name) => hourNames.test(name))
      .toSorted()
      .toReversed();
  }

  /** The newest first; a folder is read when its turn has come. */
  async *#placesBefore(before: string | undefined, wanted: readonly EventStatus[]): AsyncGenerator<[string, EventStatus], void, undefined> {
    for (const hour of await this.#hours(wanted)) {
      if (before !== undefined && hour > hourOfEvent(before)) continue;
      for (const place of await this.#placesIn(hour, wanted)) if (before === undefined || place[0] < before) yield place;
    }
  }

  /** The newest first. One that is just being moved is shown where it is found first. */
  async #placesIn(hour: string, wanted: readonly EventStatus[]): Promise<[string, EventStatus][]> {
    const places = new Map<string, EventStatus>();
    for (const status of wanted) for (const id of await this.#records(status, hour).names()) if (!places.has(id)) places.set(id, status);
    return [...places].toSorted(([a], [b]) => (a < b ? 1 : -1));
  }

  #toEventPath(status: EventStatus, id: string): string {
    return join(this.#options.folder, status, hourOfEvent(id), `${id}.json`);
  }

  #records(status: EventStatus, hour: string): RecordFolder<typeof EventRecord> {
    const { folder, folders, tenantId, log } = this.#options;
    return new RecordFolder({ folder: join(folder, status, hour), store: folder, folders, tenantId, log, schema: EventRecord, names });
  }

  #nowMs(): number {
    return (this.#options.now ?? Date.now)();
  }
}

/** What waits lies in a folder for each hour below it. `folder`: tenants/<id>/events */
export function waitingFolder(folder: string): string {
  return join(folder, 'waiting');
}

export function toEventView({ status, event }: FoundEvent): EventView {
  const { id, type, timestamp, data, tries, log, nextTryAt, reason } = event;
  const shown = { id, endpointId: endpointIdOfEvent(id), type, timestamp, status, tries, reason, log, data };
  return { ...shown, nextTryAt: status === 'waiting' ? nextTryAt : null };
}

export function noSuchEvent(): AppError {
  return new AppError('not_found', 'There is no such event, or no longer.');
}

function hourOfEvent(id: string): string {
  return toEventHour(timeOfEvent(id));
}

function parseEventCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const id = EventId.safeParse(cursor);
  if (id.success) return id.data;
  throw new AppError('invalid_request', 'The cursor is not valid', {
    errors: [{ path: 'cursor', message: 'is not a cursor of this list' }],
  });
}

function ignoreFull(error: unknown): void {
  if (!isSystemError(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
}
