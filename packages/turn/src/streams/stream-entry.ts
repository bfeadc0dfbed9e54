import type { Redis } from 'ioredis';
import { z } from 'zod';
import {
  encodeServerSentEvent,
  findErrorFacts,
  toStoredSchema,
  turnEventData,
  TurnStep,
  type TurnEvent,
  type TurnEventType,
  type TurnRecord,
} from '@concierge/contract';
import { assertNotLater, parseStored } from '@concierge/files';
import { keyOf } from '../keys.ts';

/** One entry of a turn's stream. `step` entries are the journal and never leave the service. */
export interface StreamEntry {
  /** `<epoch>-<n>`: the SSE `id`. */
  readonly id: string;
  readonly type: string;
  readonly json: string;
}

/** The entries of one write, and how many there must be before them; null when that is not known. */
export interface StreamWrite {
  readonly entries: readonly EntryToWrite[];
  readonly before: number | null;
}

/** One stream entry: its number within the epoch, its type, its data as JSON. */
export interface EntryToWrite {
  readonly seq: number;
  readonly type: string;
  readonly json: string;
}

export const STEP = 'step';
export const firstEntryId = '0-1';

const RawEntries = z.array(z.tuple([z.string(), z.tuple([z.literal('t'), z.string(), z.literal('d'), z.string()])]));

/** The entries after `after` (exclusive), or all of them. */
export async function readEntries(redis: Redis, turnId: string, after: string | null): Promise<StreamEntry[]> {
  return toEntries(await redis.xrange(keyOf.events(turnId), startAfter(after), '+'));
}

/** Reads only the first of these entries. */
export async function readSlice(
  redis: Redis,
  turnId: string,
  { after, atMost }: { readonly after: string | null; readonly atMost: number },
): Promise<StreamEntry[]> {
  return toEntries(await redis.xrange(keyOf.events(turnId), startAfter(after), '+', 'COUNT', atMost));
}

function startAfter(after: string | null): string {
  return after === null ? '-' : `(${after}`;
}

function toEntries(raw: unknown): StreamEntry[] {
  return RawEntries.parse(raw).map(([id, [, type, , json]]) => ({ id, type, json }));
}

export async function newestEntry(redis: Redis, turnId: string): Promise<StreamEntry | null> {
  const [entry] = RawEntries.parse(await redis.xrevrange(keyOf.events(turnId), '+', '-', 'COUNT', 1));
  if (entry === undefined) return null;
  const [id, [, type, , json]] = entry;
  return { id, type, json };
}

export function isPublic(entry: { readonly type: string }): boolean {
  return entry.type !== STEP;
}

export function isTerminal(entry: { readonly type: string }): boolean {
  return entry.type === 'done' || entry.type === 'error';
}

export function renderEntries(entries: readonly StreamEntry[]): string {
  let text = '';
  for (const entry of entries) if (isPublic(entry)) text += encodeServerSentEvent(entry.type, entry.json, entry.id);
  return text;
}

const rendered = /^event: (?<type>\w+)\ndata: (?<json>[^\n]*)\nid: (?<id>.*)$/u;

/** Parses the events that `renderEntries` has written, for endpoints with another wire format. */
export function readRendered(sse: string): TurnEvent[] {
  return sse.split('\n\n').flatMap((block) => {
    const { type = '', json = '', id = '' } = rendered.exec(block)?.groups ?? {};
    const event = toEvent({ type, json, id });
    return event === null ? [] : [event];
  });
}

function isEventType(type: string): type is TurnEventType {
  return Object.hasOwn(turnEventData, type);
}

/** Parses an entry as its event; null for a journal step, and for what only a later version emits. */
export function toEvent({ type, json }: StreamEntry): TurnEvent | null {
  if (!isEventType(type)) return null;
  const event = { type, data: toStoredSchema(turnEventData[type]).parse(JSON.parse(json)) };
  return event as TurnEvent; // eslint-disable-line typescript/no-unsafe-type-assertion -- type and data were parsed together
}

/** The terminal event of a turn's record. */
export function toEndEvent(record: TurnRecord): Extract<TurnEvent, { type: 'done' | 'error' }> {
  if (record.error !== null) {
    const { code, message, retryable = findErrorFacts(code).retryable } = record.error;
    return { type: 'error', data: { code, message, retryable, turnId: record.id } };
  }
  return { type: 'done', data: { ...record.usage, finishReason: record.finishReason ?? 'stop' } };
}

/** @throws LaterVersionError */
export function toStep({ type, json }: StreamEntry): TurnStep | null {
  if (type !== STEP) return null;
  const parsed = parseStored(TurnStep, json);
  if (parsed.status === 'ok') return parsed.value;
  assertNotLater(parsed, 'a step of a turn');
  throw new Error(`a step of a turn cannot be read: ${parsed.reason}`);
}

/** Orders ids of one stream: by epoch, then by number. */
export function compareIds(left: string, right: string): number {
  const [leftEpoch = '0', leftSeq = '0'] = left.split('-');
  const [rightEpoch = '0', rightSeq = '0'] = right.split('-');
  return Number(leftEpoch) - Number(rightEpoch) || Number(leftSeq) - Number(rightSeq);
}

/**
 * What pub/sub carries: a header that lets a reader see gaps and ends without parsing anything, then rendered SSE.
 * `<id before> <last id> <1 when the turn ends>\n<sse>`
 */
export function encodeLive(before: string, entries: readonly StreamEntry[]): string {
  const seen = entries.filter((entry) => isPublic(entry));
  const last = seen.at(-1);
  if (last === undefined) return '';
  return `${before} ${last.id} ${isTerminal(last) ? '1' : '0'}\n${renderEntries(seen)}`;
}

export interface LiveMessage {
  readonly before: string;
  readonly last: string;
  readonly ends: boolean;
  readonly sse: string;
}

export function decodeLive(payload: string): LiveMessage {
  const line = payload.indexOf('\n');
  const [before = firstEntryId, last = firstEntryId, ends = '0'] = payload.slice(0, line).split(' ');
  return { before, last, ends: ends === '1', sse: payload.slice(line + 1) };
}
