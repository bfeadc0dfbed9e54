import { AppError } from '@concierge/contract';
import type { FileBytes, FileEntry, FileText, TenantFiles } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';

/** The files that this agent may touch at all. A path outside is `not_found`, as if it did not exist. */
export interface FileAccess {
  /** @throws AppError */
  readText(path: string): Promise<FileText>;
  /** @throws AppError */
  readBytes(path: string): Promise<FileBytes>;
  list(path: string, options: { recursive: boolean; limit: number }): Promise<FileEntry[]>;
  stat(path: string): Promise<FileEntry | undefined>;
  writeText(path: string, text: string): Promise<{ created: boolean }>;
  /** Read, change and write without interruption. Throws what `change` throws. */
  updateText(path: string, change: (text: string) => string): Promise<unknown>;
}

/** All that the cs agent may see of the tenant's files. */
const csFolders = new Set(['skills', 'templates']);

/** The tenant's files as an agent of this access may use them: cs reads two folders and writes nothing. */
export function fileAccess(files: TenantFiles, access: ToolAccess): FileAccess {
  return access === 'admin' ? files : csAccess(files);
}

function csAccess(files: TenantFiles): FileAccess {
  return {
    readText: async (path) => files.readText(seen(path)),
    readBytes: async (path) => files.readBytes(seen(path)),
    list: async (path, options) => files.list(seen(path), options),
    stat: async (path) => files.stat(seen(path)),
    writeText: () => Promise.reject(hidden()),
    updateText: () => Promise.reject(hidden()),
  };
}

/**
 * The path again, when it is in a folder that cs may see; not what begins with a dot there, such as earlier versions of
 * skills: what the owner took out of them is not for customers. The walk itself refuses every way out of it.
 */
function seen(path: string): string {
  const [first = '', ...rest] = path.split('/');
  if (!csFolders.has(first) || rest.some((part) => part.startsWith('.'))) throw hidden();
  return path;
}

function hidden(): AppError {
  return new AppError('not_found', 'There is no such file. You can see what is under skills/ and templates/.');
}
