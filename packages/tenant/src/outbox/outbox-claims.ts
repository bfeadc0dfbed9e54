import { join } from 'node:path';
import { createFile, isSystemError, linkNew, readIfThere, type FolderSync } from '@concierge/files';
import { readBootId } from '@concierge/runtime';

const claimPattern = /^(?<id>m_[0-9a-f]{32})\.(?<part>\d{1,6})\.(?<try>\d{1,6})$/u;
const outcomeSuffix = '.fate';
const voided = 'void';

export interface ClaimedTry {
  readonly part: number;
  readonly try: number;
}

/** A claim of a message in its lane's folder. */
export interface ClaimKey extends ClaimedTry {
  readonly id: string;
  /** outbox/<lane> */
  readonly folder: string;
}

/**
 * A claim is an empty right to one try: `<id>.<part>.<try>`, made once and synced. Its outcome is a second file,
 * `<claim>.fate`, also made once: a link to the claim, made by its holder right before the request leaves, or a file
 * with the content `void`, made by the worker that takes over. So a holder that was frozen in between sends nothing,
 * and a claim whose holder died before that is known to have sent nothing.
 *
 * The link is not synced, which would take longer than all else between the claim and the request. What a killed
 * process has written is still there; what a machine without power has written may not be. So the claim names the boot
 * in which it was made: only in the same one does a missing outcome mean that nothing has left.
 */
export class OutboxClaims {
  readonly #folders: FolderSync;
  readonly #boot: string;

  constructor(folders: FolderSync, boot = readBootId()) {
    this.#folders = folders;
    this.#boot = boot;
  }

  /** The claims of this message among the names of a lane's folder. */
  static among(names: readonly string[], id: string): ClaimedTry[] {
    return names.flatMap((name) => {
      const groups = claimPattern.exec(name)?.groups;
      return groups?.['id'] === id ? [{ part: Number(groups['part']), try: Number(groups['try']) }] : [];
    });
  }

  /**
   * The message that a file in a lane's folder is beside; undefined for a file that is neither a claim nor a `.fate`
   * file.
   */
  static readMessageId(name: string): string | undefined {
    const claim = name.endsWith(outcomeSuffix) ? name.slice(0, -outcomeSuffix.length) : name;
    return claimPattern.exec(claim)?.groups?.['id'];
  }

  /** On disk when it returns. False when it has been made before. */
  async make(claim: ClaimKey): Promise<boolean> {
    return this.#create(claim, toClaimName(claim), this.#boot);
  }

  /** The request leaves now. False when another has taken over: then it must not. */
  async leave(claim: ClaimKey): Promise<boolean> {
    const path = join(claim.folder, toClaimName(claim));
    try {
      return await linkNew(path, `${path}${outcomeSuffix}`);
    } catch (error) {
      if (isSystemError(error, 'ENOENT')) return false;
      throw error;
    }
  }

  /**
   * Takes over from a holder that is gone, or may be: nothing leaves under the claim after this. What has left before?
   */
  async takeOver(claim: ClaimKey): Promise<'nothing' | 'perhaps'> {
    await this.voidIt(claim);
    const path = join(claim.folder, toClaimName(claim));
    const [boot, outcome] = await Promise.all([readIfThere(path), readIfThere(`${path}${outcomeSuffix}`)]);
    return outcome === voided && this.#boot !== '' && boot === this.#boot ? 'nothing' : 'perhaps';
  }

  /** Nothing may be sent under it any more, unless the request has left. */
  async voidIt(claim: ClaimKey): Promise<void> {
    await this.#create(claim, `${toClaimName(claim)}${outcomeSuffix}`, voided);
  }

  async #create({ folder }: ClaimKey, name: string, content: string): Promise<boolean> {
    return createFile({ folder, name, content, folders: this.#folders });
  }
}

function toClaimName({ id, part, try: number }: ClaimKey): string {
  return `${id}.${String(part)}.${String(number)}`;
}
