import { createHash } from 'node:crypto';
import { AppError, limits, type UploadRef } from '@concierge/contract';
import { Slots, type TenantSlots } from '@concierge/runtime';
import type { TenantScope } from '@concierge/tenant';
import { safeFileName, sniffType, type LookedAtFile } from '@concierge/upload';
import { OutboundError, type Outbound } from '@concierge/web';
import type { Siblings } from '../processes/siblings.ts';
import { storeCounted, type StoreOptions } from '../upload/uploads.ts';
import type { NamedFile } from './compose-message.ts';

export interface GivenFilesOptions extends StoreOptions {
  /** How many requests may have their files in memory, shared with other uploads. */
  readonly atOnce: TenantSlots;
  readonly siblings: Pick<Siblings, 'share'>;
  readonly outbound: Pick<Outbound, 'get'>;
}

/** Which hosts a caller's addresses may lead to. */
export interface FetchTerms {
  /** Public addresses alone, whatever the operator allowed. */
  readonly publicOnly: boolean;
  readonly signal: AbortSignal;
}

export interface KeptFiles {
  readonly refs: readonly UploadRef[];
  /**
   * The key by which two requests with these files are the same: bytes or address, not the ids, which are new each
   * time.
   */
  readonly keys: readonly string[];
}

/** Requests that fetch at once; more are refused. Each holds at most as much as a body. */
const FETCHING_AT_ONCE = limits.bodiesMaxBytes / limits.openAiBodyMaxBytes;
/** All files of one request together. */
const FETCH_TIMEOUT_MS = 20_000;
const MAX_REDIRECTS = 3;

/** A file whose bytes are here, or in an upload. */
type Present = { readonly at: string; readonly name: string } & (
  | { readonly bytes: Buffer; readonly key: string }
  | { readonly id: string }
);

type Found = { readonly ref: UploadRef } | { readonly fresh: LookedAtFile; readonly key: string };

/** Files that come with a request, kept as uploads are: the same types, limits and checks. */
export class GivenFiles {
  readonly #options: GivenFilesOptions;
  readonly #fetching: Slots;

  constructor(options: GivenFilesOptions) {
    this.#options = options;
    this.#fetching = new Slots(options.siblings.share(FETCHING_AT_ONCE));
  }

  /**
   * All or none: every file is looked at before the first is kept.
   * @throws AppError `invalid_request`, `unsupported_media_type`, `too_large`, `overloaded`
   */
  async keep(scope: TenantScope, files: readonly NamedFile[], terms: FetchTerms): Promise<KeptFiles> {
    if (files.length === 0) return { refs: [], keys: [] };
    const fetches = files.some(({ file }) => 'url' in file);
    using slot = fetches ? this.#fetching.tryTake() : undefined;
    if (fetches && slot === undefined) throw new AppError('overloaded', undefined, { retryAfterSeconds: 1 });
    return await this.#keepPresent(scope, await this.#fetchAll(files, terms));
  }

  async #keepPresent(scope: TenantScope, files: readonly Present[]): Promise<KeptFiles> {
    return this.#options.atOnce.run(scope.tenantId, async () => {
      const found: Found[] = [];
      for (const file of files) found.push(await look(scope, file));
      const refs: UploadRef[] = [];
      for (const file of found) refs.push('ref' in file ? file.ref : await storeCounted(scope, file.fresh, this.#options));
      return { refs, keys: found.map((file) => ('ref' in file ? file.ref.id : file.key)) };
    });
  }

  /** One after the other, within one time and one size for all. */
  async #fetchAll(files: readonly NamedFile[], terms: FetchTerms): Promise<Present[]> {
    const untilMs = Date.now() + FETCH_TIMEOUT_MS;
    let left: number = limits.openAiBodyMaxBytes;
    const present: Present[] = [];
    for (const { file, name } of files) {
      const { at } = file;
      if ('id' in file) {
        present.push({ at, name, id: file.id });
      } else if ('data' in file) {
        const bytes = decode(file.data, at);
        present.push({ at, name, bytes, key: hashFile(bytes, name) });
      } else {
        const maxBytes = Math.min(limits.uploadMaxBytes, left);
        const bytes = await this.#fetch(file, { ...terms, maxBytes, timeoutMs: Math.max(1, untilMs - Date.now()) });
        left -= bytes.length;
        present.push({ at, name, bytes, key: file.url });
      }
    }
    return present;
  }

  async #fetch(
    { url, at }: { readonly url: string; readonly at: string },
    policy: FetchTerms & { readonly maxBytes: number; readonly timeoutMs: number },
  ): Promise<Buffer> {
    const { status, bytes } = await this.#options.outbound
      .get(url, { ...policy, httpsOnly: true, maxRedirects: MAX_REDIRECTS })
      .catch((error: unknown) => {
        if (error instanceof OutboundError) throw refused(at, `could not be fetched: ${error.message}`);
        throw error;
      });
    if (status !== 200) throw refused(at, `could not be fetched: it was answered with status ${String(status)}`);
    return Buffer.from(bytes);
  }
}

async function look(scope: TenantScope, file: Present): Promise<Found> {
  if ('id' in file) {
    const ref = await scope.uploads.find(file.id);
    if (ref === undefined) throw refused(file.at, 'is not an upload of this tenant');
    return { ref };
  }
  const { bytes, key } = file;
  if (bytes.length === 0) throw refused(file.at, 'is empty, or not in base64');
  const name = safeFileName(file.name);
  return { fresh: { name, type: await sniffType(bytes, name), bytes }, key };
}

/** Base64, or a data URL of it. Its claimed type is ignored. */
function decode(data: string, at: string): Buffer {
  const comma = data.slice(0, 5).toLowerCase() === 'data:' ? data.indexOf(',') : -1;
  if (comma >= 0 && !data.slice(0, comma).toLowerCase().endsWith(';base64')) throw refused(at, 'must be in base64');
  const bytes = Buffer.from(data.slice(comma + 1), 'base64');
  if (bytes.length > limits.uploadMaxBytes)
    throw new AppError('too_large', `A file may have at most ${String(limits.uploadMaxBytes)} bytes.`);
  return bytes;
}

function hashFile(bytes: Buffer, name: string): string {
  return createHash('sha256').update(bytes).update(name).digest('hex');
}

function refused(path: string, message: string): AppError {
  return new AppError('invalid_request', undefined, { errors: [{ path, message }] });
}
