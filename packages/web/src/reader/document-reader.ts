import { TenantSlots } from '@concierge/runtime';
import { readInProcess } from './read-in-process.ts';
import type { ReadTask } from './read-message.ts';

/** Processes at once, over all tenants and of one of them; the others wait. */
const slotCounts = { count: 4, perTenant: 2 };

/** A document was got, but nothing can be read from it. The message is fit for a model. */
export class UnreadableError extends Error {
  override readonly name = 'UnreadableError';
}

export interface ReadDocument {
  /** Empty where there is none. */
  readonly title: string;
  readonly text: string;
  /** The bare words of a page: it was too large or too deep for its layout to be computed in time. */
  readonly isPlain: boolean;
  /** There was more text than is kept, or than could be read in time. */
  readonly isCut: boolean;
}

export interface ReadTerms {
  /** Whose document it is: it waits for other documents of this tenant, and hardly for those of others. */
  readonly tenantId: string;
  readonly signal: AbortSignal;
}

/**
 * The one place where documents are read: pages and PDFs from any source. Each in a process with limited time and
 * memory: a hostile document costs its own process, never the service. One reader for each service, so that its slots
 * count all of them.
 */
export class DocumentReader {
  readonly #slots = new TenantSlots(slotCounts);

  /** @throws UnreadableError, or the signal's reason */
  async read(task: ReadTask, { tenantId, signal }: ReadTerms): Promise<ReadDocument> {
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const abort = (): void => {
      aborted.reject(signal.reason);
    };
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await Promise.race([this.#slots.run(tenantId, async () => readNow(task, signal)), aborted.promise]);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }
}

async function readNow(task: ReadTask, signal: AbortSignal): Promise<ReadDocument> {
  signal.throwIfAborted();
  const last = await readInProcess(task, signal);
  signal.throwIfAborted();
  if (last === undefined) throw new UnreadableError('It could not be read within the time and memory that one document gets.');
  if (last.kind === 'refused') throw new UnreadableError(last.reason);
  const { title, text, isPlain, isCut } = last;
  return { title, text, isPlain, isCut };
}
