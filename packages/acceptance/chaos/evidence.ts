import { appendFileSync, mkdirSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

/** What one turn asks of the model; the JSON stands in the user's message. */
export const turnKinds = ['say', 'read', 'note', 'file', 'both', 'slow'] as const;
export const TurnKind = z.enum(turnKinds);
export type TurnKind = z.infer<typeof TurnKind>;

/** A client has been told that its turn is accepted. `number` is the order within the conversation, from 0, without gaps. */
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

export const faultKinds = ['kill', 'stop', 'continue', 'redis-kill', 'flush', 'failpoint', 'terminate'] as const;
export const FaultLine = z.object({
  atMs: z.number(),
  kind: z.enum(faultKinds),
  target: z.string(),
  /** Of a fail point: its name and action. */
  failpoint: z.string().optional(),
  /** Of a fail point: whether the process came by. */
  reached: z.boolean().optional(),
  /** Of a SIGTERM. */
  exitCode: z.int().nullable().optional(),
});
export type FaultLine = z.infer<typeof FaultLine>;

/** What one reader of one turn saw, over all its connections. */
export const TranscriptLine = z.discriminatedUnion('line', [
  z.object({ line: z.literal('open'), atMs: z.number(), gateway: z.string(), lastEventId: z.string().nullable() }),
  z.object({ line: z.literal('event'), atMs: z.number(), event: z.string(), data: z.string(), id: z.string() }),
  z.object({ line: z.literal('close'), atMs: z.number(), reason: z.string() }),
]);
export type TranscriptLine = z.infer<typeof TranscriptLine>;

/** `asker` posted the turn, `watcher` joined in the middle, `rereader` came when all was over. */
export const Transcript = z.object({
  turnId: z.string(),
  reader: z.enum(['asker', 'watcher', 'rereader']),
  lines: z.array(TranscriptLine),
});
export type Transcript = z.infer<typeof Transcript>;
export type ReaderName = Transcript['reader'];

/** A call as the model server saw it. */
export const LedgerLine = z.object({
  event: z.enum(['start', 'end']),
  atMs: z.number(),
  number: z.int(),
  marker: z.string(),
  round: z.int(),
  aborted: z.boolean().optional(),
});
export type LedgerLine = z.infer<typeof LedgerLine>;

const files = {
  acknowledged: 'acknowledged.jsonl',
  refused: 'refused.jsonl',
  faults: 'faults.jsonl',
  asked: 'asked.jsonl',
  ledger: 'model.jsonl',
} as const;
const Asked = z.object({ marker: z.string(), conversation: z.string(), atMs: z.number() });

/** Everything a run leaves behind for the auditor, beside the services' own logs and files: one folder of JSON lines. */
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
    return await readLines(this.ledgerFile, LedgerLine);
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

/** A file that nobody has written is empty. */
export async function readLines<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => schema.parse(JSON.parse(line)));
}
