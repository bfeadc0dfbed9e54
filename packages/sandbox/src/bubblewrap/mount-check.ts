import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { workspacePath, type Workspace } from '../workspace.ts';

interface Mount {
  /** The part of its file system that is mounted. */
  readonly source: string;
  readonly device: string;
  readonly isReadOnly: boolean;
}

/**
 * Whether every name is covered that must be covered. Checked after the sandbox has been made and before the command
 * starts: even when a name was swapped for a link in between, the cover is where the name is, or the command never
 * runs. The kernel answers from memory: a detour over the thread pool would take longer.
 */
export function isCovered(processId: number, { maskedFolders, maskedFiles, readOnly }: Workspace): boolean {
  const mounts = parseMounts(readFileSync(`/proc/${String(processId)}/mountinfo`, 'utf8'));
  const workspace = mounts.get(workspacePath);
  if (workspace === undefined) return false;
  const masks = [...maskedFolders, ...maskedFiles.map(({ name }) => name)].map((name) => mounts.get(join(workspacePath, name)));
  if (!masks.every((mount) => mount !== undefined && mount.isReadOnly && mount.device !== workspace.device)) return false;
  return readOnly.every((name) => {
    const mount = mounts.get(join(workspacePath, name));
    return mount !== undefined && mount.isReadOnly && mount.device === workspace.device && mount.source === join(workspace.source, name);
  });
}

/** The last mount on a path is the visible one. */
function parseMounts(text: string): Map<string, Mount> {
  const mounts = new Map<string, Mount>();
  for (const line of text.split('\n')) {
    const [, , device, source, place, options] = line.split(' ');
    if (device === undefined || source === undefined || place === undefined || options === undefined) continue;
    mounts.set(unescape(place), { device, source: unescape(source), isReadOnly: options.split(',').includes('ro') });
  }
  return mounts;
}

/** The kernel writes blanks and backslashes as octal numbers. */
function unescape(path: string): string {
  return path.replaceAll(/\\(\d{3})/gu, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
