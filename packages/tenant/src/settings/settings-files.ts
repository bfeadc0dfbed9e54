import { constants } from 'node:fs';
import { mkdir, open, unlink, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError, TenantSettings } from '@concierge/contract';
import {
  assertNotLater,
  ignoreMissing,
  isPlainFile,
  isSystemError,
  linkNew,
  lstatIfThere,
  parseJson,
  parseStored,
  quickReadText,
  readIfThere,
  replaceFile,
  toStatSignature,
  sweepTemporaries,
  type FolderSync,
  type Parsed,
} from '@concierge/files';
import { failpoint, SqliteLock, sqliteTrouble } from '@concierge/runtime';
import { z } from 'zod';

/*
 * An update of tenant.json, and what a reader makes of each state:
 *
 *   at rest          no update.json; tenant.json is in force when it is good, settings/last-good.json otherwise
 *   → announced      update.json contains the old and the new tenant.json; from here on the new one is in force
 *   → kept           last-good.json is the new one
 *   → torn           tenant.json has been written in part
 *   → written        tenant.json is the new one
 *   → at rest        update.json is gone
 *
 * Every writer holds the lock, which the system frees when its holder dies: an update.json that the holder of the lock
 * finds was left by a process that died, and is carried out. When tenant.json is no mixture of the old and the new one,
 * a user has edited it since, and the update is dropped.
 */

const { O_RDONLY, O_WRONLY, O_NOFOLLOW, O_NONBLOCK } = constants;
const settingsName = 'tenant.json';
const folderName = 'settings';
const lastGoodName = 'last-good.json';
const updateName = 'update.json';
/** tenant.json before it has its name. */
const newName = 'new.json';
const privateMode = 0o600;
const folderMode = 0o700;
/** Updates that come so close together are not met outside of tests. */
const looksMax = 10;
/** Where there never was a good one: the plan that allows least. */
const leastSettings: TenantSettings = { plan: 'preview' };

const nothing = Buffer.alloc(0);

/** `before` as Latin-1, in which all bytes are text: the file may contain anything. */
const SettingsUpdate = z.strictObject({ before: z.string(), after: TenantSettings });
type SettingsUpdate = z.infer<typeof SettingsUpdate>;

export interface SettingsLook {
  /** In force. */
  readonly settings: TenantSettings;
  /** What is wrong with tenant.json. */
  readonly problem: string | null;
  /** An update is under way, or was cut off. */
  readonly isChanging: boolean;
  /** The files need no more work, except, when there is a problem, by the user who caused it. */
  readonly isInOrder: boolean;
}

interface FullLook extends SettingsLook, Found {
  readonly update: SettingsUpdate | undefined;
  /** tenant.json is on its way from what `update` found to what it makes. */
  readonly isMixture: boolean;
}

/** What stands by the name tenant.json. A `linked` file has another name, by which others may change it. */
interface Found {
  readonly kind: 'missing' | 'plain' | 'linked' | 'special';
  readonly bytes: Buffer;
}

/**
 * tenant.json on disk. It lies at the top of the tenant's folder, where sandboxes cover it by a mount that a rename
 * over it, or a new file, would shed: it is written in place, and all else about it lies in settings/, a folder that is
 * covered as a whole.
 */
export class SettingsFiles {
  readonly #root: string;
  readonly #folder: string;
  /** tenant.json */
  readonly path: string;
  readonly #oldLastGood: string;
  readonly #folders: FolderSync;
  readonly #lock: SqliteLock;

  constructor(root: string, folders: FolderSync) {
    this.#root = root;
    this.#folder = join(root, folderName);
    this.path = join(root, settingsName);
    this.#oldLastGood = join(root, 'tenant.last-good.json');
    this.#folders = folders;
    this.#lock = new SqliteLock(join(this.#folder, 'lock.db'));
  }

  async look(): Promise<SettingsLook> {
    return this.#look();
  }

  /**
   * Changes what is in force, one caller of all processes after another. Nothing of what `change` throws has happened.
   * @throws AppError conflict
   */
  async write(change: (settings: TenantSettings) => TenantSettings): Promise<void> {
    await this.#locked(async () => {
      const look = await this.#tidy();
      const read = parseFound(look);
      if (read.status === 'broken' && read.isLater === true) throw notUnderstood(read.reason);
      const after = change(look.settings);
      if (look.kind === 'linked' || look.kind === 'special') throw notPlain();
      await this.#announce(look.bytes, after);
    });
  }

  /**
   * Carries out what was cut off, makes tenant.json when there is none, and keeps what is in force.
   * @throws AppError conflict
   */
  async tidy(): Promise<SettingsLook> {
    return this.#locked(async () => this.#tidy());
  }

  async sweep(): Promise<void> {
    await sweepTemporaries(this.#folder);
  }

  async #tidy(): Promise<FullLook> {
    // A second name of a tenant.json that was being made: only the holder of the lock has one.
    await ignoreMissing(unlink(join(this.#folder, newName)));
    const look = await this.#look();
    const { update, settings } = look;
    if (update !== undefined) await (look.isMixture ? this.#carryOut(update) : this.#end());
    else if (look.kind === 'missing') await this.#announce(look.bytes, settings);
    else if (!look.isInOrder) await this.#keep(settings);
    else return look;
    return this.#look();
  }

  /**
   * Every update makes a new last-good.json before it touches tenant.json, and takes update.json away after that: with
   * no update.json before the reading and the same last-good.json before and after it, what was read is not
   * half-written.
   */
  async #look(): Promise<FullLook> {
    for (let attempt = 1; ; attempt += 1) {
      const version = await this.#lastGoodVersion();
      const update = await this.#readUpdate();
      const found = await this.#readSettings();
      const isMixture = update !== undefined && isMixed(found, update);
      if (isMixture) return { ...found, settings: update.after, problem: null, isChanging: true, isInOrder: false, update, isMixture };
      const isStill = update === undefined && version === (await this.#lastGoodVersion());
      if (isStill || attempt === looksMax) return { ...(await this.#judge(found, update)), update, isMixture };
    }
  }

  async #judge(found: Found, update: SettingsUpdate | undefined): Promise<Found & SettingsLook> {
    const kept = await this.#readPrivate(lastGoodName);
    const isChanging = update !== undefined;
    const read = parseFound(found);
    if (read.status === 'ok') {
      const isInOrder = !isChanging && kept === formatSettings(read.value);
      return { ...found, settings: read.value, problem: null, isChanging, isInOrder };
    }
    const settings = parseLastGood(kept ?? (await this.#readOldLastGood()));
    return {
      ...found,
      settings,
      problem: read.reason,
      isChanging,
      isInOrder: !isChanging && found.kind !== 'missing' && kept !== undefined,
    };
  }

  async #announce(before: Buffer, after: TenantSettings): Promise<void> {
    const update: SettingsUpdate = { before: before.toString('latin1'), after };
    await this.#replace(updateName, `${JSON.stringify(update)}\n`);
    await failpoint('settings.after-announce');
    await this.#carryOut(update);
  }

  /** Can be done any number of times. */
  async #carryOut({ after }: SettingsUpdate): Promise<void> {
    await this.#keep(after);
    await failpoint('settings.after-keep');
    if (!(await this.#writeInPlace(encodeSettings(after)))) await this.#make(encodeSettings(after));
    await failpoint('settings.after-write');
    await this.#end();
  }

  async #end(): Promise<void> {
    await ignoreMissing(unlink(join(this.#folder, updateName)));
    await this.#folders.sync(this.#folder);
  }

  async #keep(settings: TenantSettings): Promise<void> {
    await this.#replace(lastGoodName, formatSettings(settings));
    await ignoreMissing(unlink(this.#oldLastGood));
  }

  /** False when there is no tenant.json. */
  async #writeInPlace(bytes: Buffer): Promise<boolean> {
    const handle = await openInPlace(this.path, O_WRONLY);
    if (handle === undefined) return false;
    try {
      if (!isPlainFile(await handle.stat())) throw notPlain();
      // Over what stands there, and the rest cut off then: all that may come of it by a kill is a mixture of the two.
      for (let written = 0; written < bytes.length;) {
        written += (await handle.write(bytes, written, bytes.length - written, written)).bytesWritten;
      }
      await failpoint('settings.before-cut');
      await handle.truncate(bytes.length);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return true;
  }

  /**
   * Under its name with all that is in it, in one step; a rename would do the same to whatever stands there by then.
   * @throws AppError conflict
   */
  async #make(bytes: Buffer): Promise<void> {
    const made = join(this.#folder, newName);
    await writeFile(made, bytes, { mode: privateMode, flag: 'wx', flush: true });
    if (!(await linkNew(made, this.path))) throw new AppError('conflict', 'Another process has just made a tenant.json.');
    await failpoint('settings.after-link');
    await unlink(made);
    await this.#folders.sync(this.#root);
  }

  async #locked<Result>(work: () => Promise<Result>): Promise<Result> {
    await this.#makeFolder();
    try {
      return await this.#lock.hold(work);
    } catch (error) {
      if (sqliteTrouble(error) !== 'busy') throw error;
      throw new AppError('conflict', 'Another process is changing the settings.', { cause: error });
    }
  }

  async #makeFolder(): Promise<void> {
    if (await this.#isFolderOurs()) return;
    // Not with what is above it: a tenant that has just been deleted does not come back by this.
    await mkdir(this.#folder, { mode: folderMode }).catch((error: unknown) => {
      if (isSystemError(error, 'ENOENT')) throw new AppError('not_found', 'There is no such tenant.', { cause: error });
      if (!isSystemError(error, 'EEXIST')) throw error;
    });
    if (!(await this.#isFolderOurs()))
      throw new AppError('conflict', 'settings is a link or no folder: what is kept there cannot be used.');
    await this.#folders.sync(this.#root);
  }

  /** A link would lead to where the tenant's own commands can write. */
  async #isFolderOurs(): Promise<boolean> {
    return (await lstatIfThere(this.#folder))?.isDirectory() === true;
  }

  async #replace(name: string, content: string): Promise<void> {
    await replaceFile({ folder: this.#folder, name, content, folders: this.#folders });
  }

  async #lastGoodVersion(): Promise<string | undefined> {
    const stats = await lstatIfThere(join(this.#folder, lastGoodName));
    return stats === undefined ? undefined : toStatSignature(stats);
  }

  async #readUpdate(): Promise<SettingsUpdate | undefined> {
    const text = await this.#readPrivate(updateName);
    const parsed = text === undefined ? undefined : parseStored(SettingsUpdate, text);
    return parsed?.status === 'ok' ? parsed.value : undefined;
  }

  async #readPrivate(name: string): Promise<string | undefined> {
    return (await this.#isFolderOurs()) ? readIfThere(join(this.#folder, name)) : undefined;
  }

  async #readSettings(): Promise<Found> {
    let handle: FileHandle | undefined;
    try {
      handle = await openInPlace(this.path, O_RDONLY);
      if (handle === undefined) return { kind: 'missing', bytes: nothing };
      const stats = await handle.stat();
      if (!stats.isFile()) return { kind: 'special', bytes: nothing };
      return { kind: isPlainFile(stats) ? 'plain' : 'linked', bytes: await handle.readFile() };
    } catch (error) {
      if (isSystemError(error, 'ELOOP', 'ENXIO')) return { kind: 'special', bytes: nothing };
      throw error;
    } finally {
      await handle?.close();
    }
  }

  /**
   * From before there was settings/. The tenant's commands could have put it there; then it is believed no more than a
   * tenant.json of theirs.
   */
  async #readOldLastGood(): Promise<string | undefined> {
    const stats = await lstatIfThere(this.#oldLastGood);
    return stats !== undefined && isPlainFile(stats) ? readIfThere(this.#oldLastGood) : undefined;
  }
}

/**
 * False when the settings in force ask for no heartbeat and nothing is being changed: two system calls and a small
 * file. True also when that takes a longer look. `root`: the tenant's folder.
 */
export async function mayAskForHeartbeat(root: string): Promise<boolean> {
  const path = join(root, settingsName);
  const stats = await lstatIfThere(path);
  if (stats === undefined || !isPlainFile(stats) || (await lstatIfThere(join(root, folderName, updateName))) !== undefined) return true;
  // Gone meanwhile: it takes a longer look.
  const parsed = parseStored(TenantSettings, await quickReadText(path).catch(() => ''));
  return parsed.status === 'broken' || parsed.value.heartbeat !== undefined;
}

/** Written with a new tenant, so that the first look finds everything in order. */
export async function writeFirstSettings(root: string, settings: TenantSettings): Promise<void> {
  const options = { mode: privateMode, flush: true };
  await writeFile(join(root, folderName, lastGoodName), formatSettings(settings), options);
  await writeFile(join(root, settingsName), formatSettings(settings), options);
}

export function formatSettings(settings: TenantSettings): string {
  return `${JSON.stringify(settings, undefined, 2)}\n`;
}

function encodeSettings(settings: TenantSettings): Buffer {
  return Buffer.from(formatSettings(settings));
}

/** Undefined when there is nothing. O_NONBLOCK: a FIFO would wait for a writer at its other end. */
async function openInPlace(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (isSystemError(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

function parseFound({ kind, bytes }: Found): Parsed<TenantSettings> {
  if (kind === 'missing') return { status: 'broken', reason: 'there is no tenant.json' };
  if (kind === 'special') return { status: 'broken', reason: 'tenant.json is a link or a special file' };
  const text = bytes.toString();
  const stored = parseStored(TenantSettings, text);
  // A field that this version does not know is misspelt, or of a later one: that has written it to the last good
  // settings, too.
  return stored.status === 'ok' ? parseJson(TenantSettings, text) : stored;
}

/** What a later version has added to them is kept. @throws LaterVersionError */
function parseLastGood(lastGood: string | undefined): TenantSettings {
  const parsed = parseStored(TenantSettings, lastGood ?? '');
  assertNotLater(parsed, settingsName);
  return parsed.status === 'ok' ? parsed.value : leastSettings;
}

/**
 * Could this be what was `before`, on its way to `after`? The new bytes go over the old ones from the beginning, then
 * the rest is cut off. A power cut may have lost an end, or left zeros in its place.
 */
function isMixed({ kind, bytes }: Found, update: SettingsUpdate): boolean {
  if (kind === 'special') return false;
  const [before, after] = [Buffer.from(update.before, 'latin1'), encodeSettings(update.after)];
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  let same = 0;
  while (same < end && bytes[same] === after[same]) same += 1;
  return before.subarray(same, end).equals(bytes.subarray(same, end));
}

/** A change made by the last good settings would overwrite what the file says. */
function notUnderstood(reason: string): AppError {
  return new AppError('conflict', `tenant.json has a value that this version does not know, and is not changed: ${reason}.`);
}

function notPlain(): AppError {
  return new AppError('conflict', 'tenant.json is a link or a special file, and is not written to.');
}
