import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HistoryLine, Session, type SessionMessage, type TurnRecord } from '@concierge/contract';
import type { Acknowledged, Evidence, FaultLine, LedgerLine, Refused, Transcript } from './evidence.ts';
import { readLines } from './evidence.ts';
import { effectsIn } from '../load/request.ts';

/** Where everything lies. The auditor has nothing else: no process, no Redis, no client. */
export interface AuditPlaces {
  readonly evidence: Evidence;
  readonly tenantsFolder: string;
  readonly logsFolder: string;
}

export interface SessionFile {
  readonly tenantId: string;
  readonly sessionId: string;
  /** undefined: it cannot be read. */
  readonly session: Session | undefined;
  readonly problem: string | undefined;
  /** What compaction has moved out, then what is in the file; each message and each turn once. */
  readonly messages: readonly SessionMessage[];
  readonly turns: readonly TurnRecord[];
  readonly revisions: readonly RevisionFile[];
}

export interface RevisionFile {
  readonly name: string;
  readonly session: Session | undefined;
  readonly text: string;
}

/** All that a run left behind, read. */
export interface AuditInput {
  readonly asked: readonly { readonly marker: string; readonly conversation: string; readonly atMs: number }[];
  /** Turns of one tenant that floods the others: accepted, and never read. */
  readonly flooded: readonly { readonly marker: string; readonly atMs: number }[];
  readonly acknowledged: readonly Acknowledged[];
  readonly refused: readonly Refused[];
  readonly faults: readonly FaultLine[];
  readonly ledger: readonly LedgerLine[];
  readonly transcripts: readonly Transcript[];
  readonly sessions: readonly SessionFile[];
  /** Turns that were accepted and are in no session at rest, as `tenant/turn file`. */
  readonly leftInInboxes: readonly string[];
  /** How often each marker was left behind by a tool with side effects. */
  readonly effects: ReadonlyMap<string, number>;
  /** Lines of the services' logs, parsed where they are JSON. */
  readonly logs: readonly LogLine[];
}

export interface LogLine {
  readonly service: string;
  readonly message: string;
  readonly level: number;
  readonly text: string;
}

export async function readAuditInput({ evidence, tenantsFolder, logsFolder }: AuditPlaces): Promise<AuditInput> {
  // What begins with a dot is of no tenant: a write-ahead log that nobody has recovered yet has copies of it all.
  const tenants = (await namesIn(tenantsFolder)).filter((name) => !name.startsWith('.'));
  const perTenant = await Promise.all(tenants.map(async (tenantId) => await readTenant(join(tenantsFolder, tenantId), tenantId)));
  return {
    asked: await evidence.readAsked(),
    flooded: await evidence.readFlooded(),
    acknowledged: await evidence.readAcknowledged(),
    refused: await evidence.readRefused(),
    faults: await evidence.readFaults(),
    ledger: await evidence.readLedger(),
    transcripts: await evidence.readTranscripts(),
    sessions: perTenant.flatMap(({ sessions }) => sessions),
    leftInInboxes: perTenant.flatMap(({ inbox }) => inbox),
    effects: countEach(perTenant.flatMap(({ effects }) => effects)),
    logs: await readLogs(logsFolder),
  };
}

async function readTenant(folder: string, tenantId: string): Promise<{ sessions: SessionFile[]; inbox: string[]; effects: string[] }> {
  const inbox = (await namesIn(join(folder, 'inbox'))).filter((name) => /^t_[0-9a-f]+\.json$/u.test(name));
  return {
    sessions: await readSessions(folder, tenantId),
    inbox: inbox.map((name) => `${tenantId}/${name}`),
    effects: await readEffects(folder),
  };
}

async function readSessions(folder: string, tenantId: string): Promise<SessionFile[]> {
  const names = (await namesIn(join(folder, 'sessions'))).filter((name) => /^[0-9a-f]{32}\.json$/u.test(name));
  return await Promise.all(
    names.map(async (name) => await readSession(join(folder, 'sessions'), { tenantId, sessionId: name.slice(0, 32) })),
  );
}

async function readSession(folder: string, ids: { tenantId: string; sessionId: string }): Promise<SessionFile> {
  const { session, problem } = parseSession(await readFile(join(folder, `${ids.sessionId}.json`), 'utf8'));
  const history = await readLines(join(folder, `${ids.sessionId}.history.jsonl`), HistoryLine);
  const messages = [...history.flatMap((line) => (line.kind === 'message' ? [line.message] : [])), ...(session?.messages ?? [])];
  const turns = [...history.flatMap((line) => (line.kind === 'turn' ? [line.turn] : [])), ...(session?.turns ?? [])];
  // A history is appended before the file without these messages is published: after a crash both hold them, which is
  // no doubling.
  const once = history.length > 0;
  const place = join(folder, '.revisions', ids.sessionId);
  const revisionNames = (await namesIn(place)).filter((name) => /^\d{10}\.json$/u.test(name)).toSorted();
  const revisions = await Promise.all(
    revisionNames.map(async (name): Promise<RevisionFile> => {
      const text = await readFile(join(place, name), 'utf8');
      return { name, text, session: parseSession(text).session };
    }),
  );
  return { ...ids, session, problem, messages: once ? byId(messages) : messages, turns: once ? byId(turns) : turns, revisions };
}

function parseSession(text: string): { session: Session | undefined; problem: string | undefined } {
  try {
    return { session: Session.parse(JSON.parse(text)), problem: undefined };
  } catch (error) {
    return { session: undefined, problem: String(error).slice(0, 300) };
  }
}

function byId<Item extends { readonly id: string }>(items: readonly Item[]): Item[] {
  return [...new Map(items.map((item) => [item.id, item])).values()];
}

/** Everything but what quotes the conversation itself, and earlier versions of files. */
async function readEffects(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const kept = files.filter((path) => !/^\/(?:sessions|inbox|settings\/history)\//u.test(path.slice(folder.length)));
  return (await Promise.all(kept.map(async (path) => effectsIn(await readFile(path, 'utf8'))))).flat();
}

async function readLogs(folder: string): Promise<LogLine[]> {
  const names = (await namesIn(folder)).filter((name) => name.endsWith('.log'));
  const texts = await Promise.all(
    names.map(async (name) => ({ service: name.slice(0, -'.log'.length), text: await readFile(join(folder, name), 'utf8') })),
  );
  return texts.flatMap(({ service, text }) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => ({ service, ...parseLog(line) })),
  );
}

function parseLog(text: string): { message: string; level: number; text: string } {
  // A process that is killed leaves half a line, and Node itself prints no JSON.
  const message = /"msg":"([^"]*)"/u.exec(text)?.[1] ?? text;
  return { message, level: Number(/^\{"level":(\d+)/u.exec(text)?.[1] ?? 0), text };
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch(() => []);
}

function countEach(markers: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const marker of markers) counts.set(marker, (counts.get(marker) ?? 0) + 1);
  return counts;
}
