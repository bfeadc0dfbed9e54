import { ContactId } from '@concierge/contract';
import { ToolError } from '../tool.ts';
import type { MemoryView } from './memory-view.ts';

const LISTED_MAX = 30;

/** For a reference that is none, with those there are. */
export async function unknownNote(memory: Pick<MemoryView, 'list'>, ref: string, cause: unknown): Promise<ToolError> {
  if (ContactId.safeParse(ref).success)
    return new ToolError(`${ref} is a conversation and no note. Read it with session_history.`, { cause });
  const newest = (await memory.list()).toSorted((left, right) => right.mtimeMs - left.mtimeMs).slice(0, LISTED_MAX);
  const known = newest.length === 0 ? 'Nothing has been kept yet.' : `The newest are: ${newest.map(({ path }) => path).join(', ')}.`;
  return new ToolError(`There is no note "${ref}". ${known}`, { cause });
}
