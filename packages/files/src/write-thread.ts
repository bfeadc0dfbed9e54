import { parentPort } from 'node:worker_threads';
import { createFiles, replaceFile, type CreatedFiles } from './atomic-file.ts';
import { FolderSync } from './folder-sync.ts';

/* The body of a worker thread: writes files for `FileWriter`, any number at once; reports many outcomes at a time. */

/** New files that must not take another's place, otherwise one that may. */
export interface WriteOrder {
  readonly id: number;
  readonly mayReplace: boolean;
  readonly folder: string;
  readonly files: readonly { readonly name: string; readonly content: string }[];
}

/** See `CreatedFiles`. */
export interface WriteOutcome {
  readonly id: number;
  readonly created: readonly boolean[];
  readonly failure: WriteError | undefined;
}

/** The fields that identify a system error: between threads an error keeps only its message. */
export type WriteError = Pick<NodeJS.ErrnoException, 'message' | 'code' | 'errno' | 'syscall' | 'path'>;

const folders = new FolderSync();
let outcomes: WriteOutcome[] = [];

parentPort?.on('message', (orders: readonly WriteOrder[]) => {
  for (const order of orders) {
    write(order).then(
      ({ created, failure }) => tell({ id: order.id, created, failure: failure === undefined ? undefined : describe(failure) }),
      (error: unknown) => tell({ id: order.id, created: [], failure: describe(error) }),
    );
  }
});
// Ready.
parentPort?.postMessage([]);

async function write({ mayReplace, folder, files }: WriteOrder): Promise<CreatedFiles> {
  if (!mayReplace) return createFiles({ folder, files, folders });
  for (const file of files) await replaceFile({ ...file, folder, folders });
  return { created: files.map(() => true), failure: undefined };
}

function tell(outcome: WriteOutcome): void {
  outcomes.push(outcome);
  if (outcomes.length > 1) return;
  setImmediate(() => {
    parentPort?.postMessage(outcomes);
    outcomes = [];
  });
}

function describe(error: unknown): WriteError {
  if (!(error instanceof Error)) return { message: String(error) };
  const { message, code, errno, syscall, path }: NodeJS.ErrnoException = error;
  return { message, code, errno, syscall, path };
}
