import { parentPort } from 'node:worker_threads';
import { createFile, replaceFile } from './atomic-file.ts';
import { FolderSync } from './folder-sync.ts';

/* The body of a worker thread: writes files for `FileWriter`, any number at once, and tells what became of them, many in one message. */

/** A new file where it must not take another's place, otherwise one that may. */
export interface WriteOrder {
  readonly id: number;
  readonly mayReplace: boolean;
  readonly folder: string;
  readonly name: string;
  readonly content: string;
}

/** `false`: the name was taken. */
export interface WriteOutcome {
  readonly id: number;
  readonly result: boolean | WriteError;
}

/** What is known of a system error by: of an error that is sent from thread to thread, only the message would be left. */
export type WriteError = Pick<NodeJS.ErrnoException, 'message' | 'code' | 'errno' | 'syscall' | 'path'>;

const folders = new FolderSync();
let outcomes: WriteOutcome[] = [];

parentPort?.on('message', (orders: readonly WriteOrder[]) => {
  for (const order of orders) {
    write(order).then(
      (result) => tell({ id: order.id, result }),
      (error: unknown) => tell({ id: order.id, result: describe(error) }),
    );
  }
});
// Ready.
parentPort?.postMessage([]);

async function write({ mayReplace, folder, name, content }: WriteOrder): Promise<boolean> {
  const file = { folder, name, content, folders };
  if (!mayReplace) return createFile(file);
  await replaceFile(file);
  return true;
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
