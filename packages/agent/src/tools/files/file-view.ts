import { AppError } from '@concierge/contract';
import type { TenantFiles } from '@concierge/tenant';
import type { ToolAccess } from '../tool-access.ts';
import type { FileView } from '../tool-context.ts';

/** All that the cs agent may see of the tenant's files. */
const csFolders = new Set(['skills', 'templates']);

/** The tenant's files as an agent of this access may use them: cs reads two folders and writes nothing. */
export function fileView(files: TenantFiles, access: ToolAccess): FileView {
  return access === 'admin' ? wholeView(files) : csView(files);
}

function wholeView(files: TenantFiles): FileView {
  return {
    readText: async (path) => files.readText(path),
    readBytes: async (path) => files.readBytes(path),
    list: async (path, options) => files.list(path, options),
    stat: async (path) => files.stat(path),
    writeText: async (path, text) => files.writeText(path, text),
    updateText: async (path, change) => files.updateText(path, change),
  };
}

function csView(files: TenantFiles): FileView {
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
 * The path again, when it is in a folder that cs may see; not what begins with a dot there, such as earlier versions of skills: what
 * the owner took out of them is not for customers. The walk itself refuses every way out of it.
 */
function seen(path: string): string {
  const [first = '', ...rest] = path.split('/');
  if (!csFolders.has(first) || rest.some((part) => part.startsWith('.'))) throw hidden();
  return path;
}

function hidden(): AppError {
  return new AppError('not_found', 'There is no such file. You can see what is under skills/ and templates/.');
}
