import { appendFileSync, mkdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** What one turn asks of the model; the JSON stands in the user's message. */
export const turnKinds = ['say', 'read', 'note', 'file', 'both', 'slow', 'poison'] as const;
export const TurnKind = z.enum(turnKinds);
export type TurnKind = z.infer<typeof TurnKind>;

/**
 * A client has got the acknowledgement of its turn. `number` is the order within the conversation, from 0, without
 * gaps.
 */
export const Acknowledged = z.object({
  marker: z.string(),
  kind: TurnKind,
  tenantId: z.string(),
  conversation: z.string(),
  number: z.int(),
  turnId: z.string(),
  sessionId: z.string(),
  atMs: z.number(),
  /** How often it was posted until then, always with one Idempotency-Key. */
  posts: z.int(),
});
export type Acknowledged = z.infer<typeof Acknowledged>;

/** An answer that no client should get, whatever has just been killed; it asked again. */
export const Refused = z.object({
  marker: z.string(),
  gateway: z.string(),
  request: z.string(),
  status: z.int(),
  body: z.string(),
  atMs: z.number(),
});
export type Refused = z.infer<typeof Refused>;

const processFaults = ['kill', 'stop', 'continue', 'failpoint', 'terminate', 'hang'] as const;
const redisFaults = ['redis-kill', 'flush', 'redis-frozen', 'redis-full', 'redis-truncated', 'connections-killed'] as const;
export const FaultLine = z.object({
  atMs: z.number(),
  kind: z.enum([...processFaults, ...redisFaults, 'clock', 'disk-full', 'disk-free']),
  target: z.string(),
  /** Name and action of a fail point. */
  failpoint: z.string().optional(),
  /** Whether the process reached the fail point. */
  reached: z.boolean().optional(),
  /** The exit code after a SIGTERM. */
  exitCode: z.int().nullable().optional(),
  /** How long the process hung until it ended by itself; null: it did not. */
  endedAfterMs: z.number().nullable().optional(),
  /** The offset of a clock from the real one. */
  offsetSeconds: z.number().optional(),
  /**
   * How many questions were put off while the disk was full, and whether the gateways reported ready all the time.
   */
  refusals: z.int().optional(),
  wasReady: z.boolean().optional(),
});
export type FaultLine = z.infer<typeof FaultLine>;

/** What one reader of one turn saw, over all its connections. */
export const TranscriptLine = z.discriminatedUnion('line', [
  z.object({ line: z.literal('open'), atMs: z.number(), gateway: z.string(), lastEventId: z.string().nullable() }),
  z.object({ line: z.literal('event'), atMs: z.number(), event: z.string(), data: z.string(), id: z.string() }),
  z.object({ line: z.literal('close'), atMs: z.number(), reason: z.string() }),
  // A whole answer, not a stream of ours: what its client has in the end. `error` is the code that a failed turn was
  // answered with.
  z.object({
    line: z.literal('reply'),
    atMs: z.number(),
    text: z.string(),
    calls: z.array(z.string()).nullable(),
    error: z.string().nullable(),
  }),
]);
export type TranscriptLine = z.infer<typeof TranscriptLine>;

/**
 * `asker` posted the turn and reads events; `watcher` joined in the middle; `jsonAsker`, `completionAsker` and
 * `completionStreamer` posted it and want one JSON reply, or the reply of `/v1`. When all is over `rereader` reads the
 * events from their start, `retrier` posts the same request again, and `jsonRetrier` does so for the JSON reply.
 */
export const readerNames = [
  'asker',
  'watcher',
  'jsonAsker',
  'completionAsker',
  'completionStreamer',
  'rereader',
  'retrier',
  'jsonRetrier',
] as const;
const askers: ReadonlySet<string> = new Set(['asker', 'jsonAsker', 'completionAsker', 'completionStreamer']);

export const Transcript = z.object({
  turnId: z.string(),
  reader: z.enum(readerNames),
  lines: z.array(TranscriptLine),
});
export type Transcript = z.infer<typeof Transcript>;
export type ReaderName = Transcript['reader'];

/** Whether this is the transcript of the client that posted the turn first. */
export function isAskers({ reader }: Transcript): boolean {
  return askers.has(reader);
}

/** A call as the model server saw it. */
export const LedgerLine = z.object({
  event: z.enum(['start', 'end']),
  atMs: z.number(),
  number: z.int(),
  marker: z.string(),
  round: z.int(),
  aborted: z.boolean().optional(),
  /** The process that called. */
  caller: z.string().optional(),
});
export type LedgerLine = z.infer<typeof LedgerLine>;

/** Calls that have begun and have not ended. */
export function callsInFlight(ledger: readonly LedgerLine[]): LedgerLine[] {
  const ended = new Set(ledger.filter(({ event }) => event === 'end').map(({ number }) => number));
  return ledger.filter(({ event, number }) => event === 'start' && !ended.has(number));
}

const files = {
  acknowledged: 'acknowledged.jsonl',
  refused: 'refused.jsonl',
  faults: 'faults.jsonl',
  asked: 'asked.jsonl',
  ledger: 'model.jsonl',
  flooded: 'flooded.jsonl',
} as const;
const Asked = z.object({ marker: z.string(), conversation: z.string(), atMs: z.number() });
/** Accepted, and never read. */
const Flooded = z.object({ marker: z.string(), atMs: z.number() });

/**
 * Everything a run leaves behind for the auditor, beside the services' own logs and files: one folder of JSON lines.
 */
export class Evidence {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(join(folder, 'transcripts'), { recursive: true });
  }

  get ledgerFile(): string {
    return join(this.folder, files.ledger);
  }

  asked(line: z.infer<typeof Asked>): void {
    this.#append(files.asked, line);
  }

  acknowledged(line: Acknowledged): void {
    this.#append(files.acknowledged, line);
  }

  refused(line: Refused): void {
    this.#append(files.refused, line);
  }

  fault(line: FaultLine): void {
    this.#append(files.faults, line);
  }

  transcript(turnId: string, reader: ReaderName, lines: readonly TranscriptLine[]): void {
    if (lines.length === 0) return;
    appendFileSync(
      join(this.folder, 'transcripts', `${turnId}.${reader}.jsonl`),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  }

  flooded(line: z.infer<typeof Flooded>): void {
    this.#append(files.flooded, line);
  }

  async readFlooded(): Promise<z.infer<typeof Flooded>[]> {
    return await readLines(join(this.folder, files.flooded), Flooded);
  }

  async readAsked(): Promise<z.infer<typeof Asked>[]> {
    return await readLines(join(this.folder, files.asked), Asked);
  }

  async readAcknowledged(): Promise<Acknowledged[]> {
    return await readLines(join(this.folder, files.acknowledged), Acknowledged);
  }

  async readRefused(): Promise<Refused[]> {
    return await readLines(join(this.folder, files.refused), Refused);
  }

  async readFaults(): Promise<FaultLine[]> {
    return await readLines(join(this.folder, files.faults), FaultLine);
  }

  async readLedger(): Promise<LedgerLine[]> {
    return await readLines(this.ledgerFile, LedgerLine, { isGrowing: true });
  }

  async readTranscripts(): Promise<Transcript[]> {
    const names = await readdir(join(this.folder, 'transcripts'));
    return await Promise.all(
      names.map(async (name) => {
        const [turnId, reader] = name.split('.');
        return Transcript.parse({ turnId, reader, lines: await readLines(join(this.folder, 'transcripts', name), TranscriptLine) });
      }),
    );
  }

  // Written at once and not buffered: what is logged as seen has been logged when the run breaks off.
  #append(name: string, line: object): void {
    appendFileSync(join(this.folder, name), `${JSON.stringify(line)}\n`);
  }
}

/**
 * A file that was never written is empty. `isGrowing`: another process writes to it, and what stands behind the last
 * whole line is not complete yet.
 */
export async function readLines<Schema extends z.ZodType>(
  path: string,
  schema: Schema,
  { isGrowing = false } = {},
): Promise<z.output<Schema>[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text
    .slice(0, isGrowing ? text.lastIndexOf('\n') + 1 : undefined)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => schema.parse(JSON.parse(line)));
}
