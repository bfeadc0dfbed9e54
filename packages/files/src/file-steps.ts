import { randomBytes } from 'node:crypto';
import { closeSync, constants, open, writeFile } from 'node:fs';
import { link, readdir, rename, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { failpoint, isArmed, startThread } from '@concierge/runtime';
import { StatCachePolicy } from './stat-cache.ts';
import { ignoreMissing, toError } from './system-error.ts';

/**
 * One operation on files, which need not be on disk when it is done. `create`: a new file, rejects with EEXIST where
 * there is one; on disk with `isSynced`. `remove`: does nothing where there is none. `passes`: the fail point after it.
 */
export type FileStep = { readonly passes?: string } & (
  | { readonly do: 'create'; readonly path: string; readonly content: string; readonly isSynced: boolean }
  | { readonly do: 'link' | 'rename'; readonly from: string; readonly to: string }
  | { readonly do: 'remove' | 'list'; readonly path: string }
);

/** What the thread answers to the steps of one caller. */
export type StepsAnswer =
  | { readonly names: readonly string[] }
  | { readonly failure: Pick<NodeJS.ErrnoException, 'message' | 'code' | 'syscall' | 'path'> };

interface Answers {
  readonly answers: readonly StepsAnswer[];
  readonly tookMs: number;
}

interface Job {
  readonly steps: readonly FileStep[];
  readonly resolve: (names: readonly string[]) => void;
  readonly reject: (error: Error) => void;
}

/** So many callers at once make a thread worth its memory. */
const CROWD = 8;
/** Longer contents are not copied to a thread. */
const CONTENT_MAX = 64 * 1024;
/** Of one step on average: on a disk this slow the steps of several callers had better be done side by side. */
const SLOW_STEP_MS = 1;
const MEMORY_MB = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** Does the steps of all callers that come meanwhile one after the other, and answers them together. */
class StepsThread {
  readonly #thread: Worker;
  #waiting: Job[] = [];
  /** What the thread is busy with. */
  #sent: readonly Job[] = [];
  #failure: Error | undefined;

  constructor() {
    this.#thread = startThread(import.meta.url, 'file-steps-thread', { resourceLimits: MEMORY_MB });
    this.#thread.unref();
    this.#thread.on('message', (answers: Answers) => {
      this.#settle(answers);
    });
    this.#thread.on('error', (error) => {
      this.#fail(toError(error));
    });
  }

  get works(): boolean {
    return this.#failure === undefined;
  }

  async run(steps: readonly FileStep[]): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ steps, resolve, reject });
      // With all that comes in the same round of the event loop.
      if (this.#waiting.length === 1) setImmediate(() => this.#send());
    });
  }

  #send(): void {
    if (this.#failure !== undefined) this.#fail(this.#failure);
    if (this.#sent.length > 0 || this.#waiting.length === 0) return;
    this.#sent = this.#waiting;
    this.#waiting = [];
    this.#thread.ref();
    this.#thread.postMessage(this.#sent.map(({ steps }) => steps));
  }

  #settle({ answers, tookMs }: Answers): void {
    const jobs = this.#sent;
    this.#sent = [];
    this.#thread.unref();
    threadPolicy.note(tookMs / jobs.reduce((sum, { steps }) => sum + steps.length, 0));
    for (const [index, { resolve, reject }] of jobs.entries()) {
      const answer = answers[index];
      if (answer !== undefined && 'names' in answer) resolve(answer.names);
      else reject(Object.assign(new Error(answer?.failure.message ?? 'the thread for files did not answer'), answer?.failure));
    }
    this.#send();
  }

  /** What was sent may have been done, as with any error of a disk. */
  #fail(error: Error): void {
    this.#failure = error;
    for (const { reject } of [...this.#sent, ...this.#waiting]) reject(error);
    this.#sent = [];
    this.#waiting = [];
  }
}

const threadPolicy = new StatCachePolicy({ slowMs: SLOW_STEP_MS });
let thread: StepsThread | undefined;
let running = 0;

/**
 * Does the steps one after the other up to the first that fails; the names that `list` found. Under load the steps of
 * many callers go to one thread together: an operation through the thread pool costs several times its work.
 * Rejects as the functions of `node:fs/promises` do.
 */
export async function runFileSteps(steps: readonly FileStep[]): Promise<readonly string[]> {
  running += 1;
  try {
    const names: string[] = [];
    let from = 0;
    for (const [index, { passes }] of steps.entries()) {
      const isStop = passes !== undefined && isArmed(passes);
      if (!isStop && index < steps.length - 1) continue;
      names.push(...(await runTogether(steps.slice(from, index + 1))));
      from = index + 1;
      if (isStop) await failpoint(passes);
    }
    return names;
  } finally {
    running -= 1;
  }
}

async function runTogether(steps: readonly FileStep[]): Promise<readonly string[]> {
  const takesLong = steps.some((step) => step.do === 'create' && (step.isSynced || step.content.length > CONTENT_MAX));
  if (takesLong || !threadPolicy.inPlace) return runInPool(steps);
  if (thread === undefined && running >= CROWD) thread = new StepsThread();
  return thread?.works === true ? thread.run(steps) : runInPool(steps);
}

async function runInPool(steps: readonly FileStep[]): Promise<readonly string[]> {
  const names: string[] = [];
  for (const step of steps) names.push(...(await runStepInPool(step)));
  return names;
}

async function runStepInPool(step: FileStep): Promise<readonly string[]> {
  switch (step.do) {
    case 'create':
      await writeNewFile(step.path, step.content, step);
      return [];
    case 'link':
      await link(step.from, step.to);
      return [];
    case 'rename':
      await rename(step.from, step.to);
      return [];
    case 'remove':
      await ignoreMissing(unlink(step.path));
      return [];
    case 'list':
      return readdir(step.path);
  }
}

/** Names that begin like this are left-overs of a write that was cut off, or of one that is under way. */
export const temporaryPrefix = '.tmp-';

/** The callback functions: file handles of `node:fs/promises` cost as much as the work itself. */
export const openInPool = promisify(open);
const writeInPool = promisify(writeFile);

/** What we keep for ourselves. */
export const privateMode = 0o600;

/**
 * A write that returns when its bytes are on disk saves a small file the fsync: one way through the thread pool less.
 * Not every system has it, and larger files may be written in pieces.
 */
const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC }: { readonly [Flag in keyof typeof constants]?: number } = constants;
const newFile = (O_WRONLY ?? 0) | (O_CREAT ?? 0) | (O_EXCL ?? 0);
const smallBytes = 64 * 1024;
const processMark = randomBytes(8).toString('hex');
let temporaries = 0;

/** A name no other process or call uses. */
export function temporaryName(): string {
  temporaries += 1;
  return `${temporaryPrefix}${processMark}-${temporaries.toString(36)}`;
}

export interface NewFileOptions {
  /** Default 0o600: what we keep for ourselves. */
  readonly mode?: number | undefined;
  /** Default true. Otherwise a power cut may take its content, until it is synced. */
  readonly isSynced?: boolean;
}

/** A new file with this content, fsynced. Rejects with EEXIST where there is one. */
export async function writeNewFile(path: string, content: string | Uint8Array, options: NewFileOptions = {}): Promise<void> {
  const { mode = privateMode, isSynced = true } = options;
  const isSmall = O_DSYNC !== undefined && content.length <= smallBytes;
  const descriptor = await openInPool(path, isSynced && isSmall ? newFile | O_DSYNC : 'wx', mode);
  try {
    await writeInPool(descriptor, content, { flush: isSynced && !isSmall });
  } finally {
    // What is to be flushed has been: closing has nothing left to do, and is not worth a thread.
    closeSync(descriptor);
  }
}
