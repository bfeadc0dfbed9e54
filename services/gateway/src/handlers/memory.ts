import { AppError, type MemoryNote } from '@concierge/contract';
import type { FileEntry } from '@concierge/tenant';
import type { Handlers } from '../http/call.ts';

/** A page waits for it; what was not read by then, the next search reads. */
const SEARCH_TIMEOUT_MS = 30_000;

/** The owner's view of memory. By words alone: vectors come from a model provider, and only workers speak to those. */
export function memoryHandlers(): Pick<Handlers, 'searchMemory'> {
  return {
    searchMemory: async ({ caller, query }) => {
      const { memory, memorySearch } = caller.scope;
      if (query.q === undefined) {
        const notes = (await memory.list()).toSorted((one, other) => other.mtimeMs - one.mtimeMs);
        return { kind: 'answer', status: 200, json: { notes: notes.map((entry) => noteOf(entry)) } };
      }
      const signal = AbortSignal.timeout(SEARCH_TIMEOUT_MS);
      try {
        const { hits, unread } = await memorySearch.search({ access: 'owner' }, { text: query.q, limit: query.limit, signal });
        return { kind: 'answer', status: 200, json: { hits: [...hits], unread } };
      } catch (error) {
        if (!signal.aborted) throw error;
        throw new AppError('overloaded', 'The memory could not be searched in time.', { cause: error, retryAfterSeconds: 2 });
      }
    },
  };
}

function noteOf({ path, size, mtimeMs }: FileEntry): MemoryNote {
  return { ref: path, size, updatedAt: new Date(mtimeMs).toISOString() };
}
