import { stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, AuditEntry, limits, type AuditAct } from '@concierge/contract';
import {
  appendLines,
  ignoreMissing,
  isSystemError,
  keepFolders,
  makeStoreFolder,
  namesIn,
  parseJson,
  readIfThere,
  type FolderSync,
} from '@concierge/files';
import type { Log } from '@concierge/runtime';

// A number with its file's ending; greater numbers are newer.
const fileName = /^(?<number>\d{6})\.jsonl$/u;
const cursorPattern = /^(?<file>\d{6})-(?<line>\d{1,7})$/u;
const fileDigits = 6;

export type AuditRecord = Omit<AuditEntry, 'at' | 'act'> & { readonly act: AuditAct };

export interface AuditLogOptions {
  /** Only the service writes there. */
  readonly folder: string;
  /** The uppermost folder that may be made for it; what is above is there, or its tenant is gone. */
  readonly store: string;
  readonly folders: FolderSync;
  readonly log: Log;
  readonly fileMaxBytes?: number;
  readonly filesKept?: number;
}

/** The newest entries, and where the next page begins; null when nothing follows. */
export interface AuditPage {
  readonly entries: AuditEntry[];
  readonly nextCursor: string | null;
}

/**
 * Who did what to what, in files that are only appended to: 000001.jsonl and so on, of which the newest are kept. Any
 * process may append; two that find a file full begin the same next one.
 */
export class AuditLog {
  readonly #options: Required<AuditLogOptions>;

  constructor(options: AuditLogOptions) {
    this.#options = { fileMaxBytes: limits.auditFileMaxBytes, filesKept: limits.auditFilesKept, ...options };
  }

  /**
   * On disk when it returns. What is recorded has been done: that it cannot be written is logged, and fails nothing.
   */
  async record(record: AuditRecord): Promise<void> {
    const { folder, log } = this.#options;
    const target = record.target === null ? null : record.target.slice(0, limits.auditTargetMaxCharacters);
    const entry: AuditEntry = { at: new Date().toISOString(), ...record, target };
    try {
      await this.#append(JSON.stringify(entry));
    } catch (error) {
      log.error({ folder, act: record.act, tenantId: record.tenantId, err: error }, 'an act could not be put on record');
    }
  }

  /** Newest first. @throws AppError invalid_request for a cursor that is none */
  async page({ limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined }): Promise<AuditPage> {
    const from = cursor === undefined ? undefined : readCursor(cursor);
    const entries: AuditEntry[] = [];
    for (const file of (await this.#files()).toReversed()) {
      if (from !== undefined && file > from.file) continue;
      const lines = ((await readIfThere(this.#toPath(file))) ?? '').split('\n');
      const last = from?.file === file ? Math.min(from.line, lines.length) : lines.length;
      for (let line = last - 1; line >= 0; line -= 1) {
        const parsed = parseJson(AuditEntry, lines[line] ?? '');
        // Blank, or torn by a crash.
        if (parsed.status === 'broken') continue;
        if (entries.length === limit) return { entries, nextCursor: `${file}-${String(line + 1)}` };
        entries.push(parsed.value);
      }
    }
    return { entries, nextCursor: null };
  }

  async #append(line: string): Promise<void> {
    const { folder, store, folders, fileMaxBytes } = this.#options;
    await keepFolders(await makeStoreFolder(folder, { store, mode: 0o700 }), folders);
    const newest = (await this.#files()).at(-1);
    const isFull = newest !== undefined && (await sizeIfThere(this.#toPath(newest))) >= fileMaxBytes;
    const file = String(Number(newest ?? 0) + (newest === undefined || isFull ? 1 : 0)).padStart(fileDigits, '0');
    await appendLines(this.#toPath(file), [line], { path: folder, folders });
    if (file !== newest) await this.#drop();
  }

  /** Removes all but the newest. */
  async #drop(): Promise<void> {
    for (const file of (await this.#files()).slice(0, -this.#options.filesKept)) await ignoreMissing(unlink(this.#toPath(file)));
  }

  /** Numbers, oldest first. */
  async #files(): Promise<string[]> {
    const names = await namesIn(this.#options.folder);
    return names.flatMap((name) => fileName.exec(name)?.groups?.['number'] ?? []).toSorted();
  }

  #toPath(file: string): string {
    return join(this.#options.folder, `${file}.jsonl`);
  }
}

async function sizeIfThere(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return 0;
    throw error;
  }
}

function readCursor(cursor: string): { readonly file: string; readonly line: number } {
  const { file, line } = cursorPattern.exec(cursor)?.groups ?? {};
  if (file !== undefined && line !== undefined) return { file, line: Number(line) };
  throw new AppError('invalid_request', 'The cursor is not valid', {
    errors: [{ path: 'cursor', message: 'is not a cursor of this list' }],
  });
}
