import { withoutEnding } from '@concierge/contract';

/** A folder as models name it: ".", "./" and "/" are the whole workspace, and a slash at the end says nothing. */
export function folderOf(path: string): string {
  const bare = withoutEnding(path, '/');
  return bare === '.' ? '' : bare;
}
