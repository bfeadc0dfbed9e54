import { answerDeadline } from '@concierge/runtime';

/** Hosts and their subdomains that a provider keeps files on. A message may name any other address. */
export interface MediaSources {
  /** The token of the binding goes along. */
  readonly withToken: readonly string[];
  /** Their addresses are signed: no token goes there. */
  readonly open: readonly string[];
}

/**
 * How a file may be fetched from there; undefined: not at all. To be asked of each address and each redirect before a
 * token goes with it. `operatorOrigins` are those of the APIs' base addresses, where an operator has set other ones:
 * never an address from a tenant or a message.
 */
export function mediaAccess(
  { withToken, open }: MediaSources,
  address: string,
  operatorOrigins: readonly string[] = [],
): 'with_token' | 'open' | undefined {
  const url = URL.parse(address);
  if (url === null) return undefined;
  if (operatorOrigins.includes(url.origin)) return 'with_token';
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return undefined;
  const isIn = (hosts: readonly string[]): boolean => hosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`));
  if (isIn(withToken)) return 'with_token';
  return isIn(open) ? 'open' : undefined;
}

const TIMEOUT_MS = 60_000;
const MAX_REDIRECTS = 3;

export interface FileRequest {
  /** As the inbound message named it. */
  readonly file: { readonly id: string | null; readonly url: string | null };
  readonly maxBytes: number;
}

export interface FetchedFile {
  readonly bytes: Uint8Array;
  /** The provider's type: not to be trusted before the bytes are checked. */
  readonly contentType: string;
}

/** The message named neither an id nor an address that could be asked for. */
export function unnamed(): FileUnavailableError {
  return new FileUnavailableError('gone', 'The message does not say where the file is.');
}

export type FileFailure = 'gone' | 'too_large' | 'refused' | 'host_not_allowed' | 'unreachable';

/** Error messages may stand in the contact's conversation: no address and no token in them. */
export class FileUnavailableError extends Error {
  override readonly name = 'FileUnavailableError';
  readonly failure: FileFailure;

  constructor(failure: FileFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.failure = failure;
  }
}

export interface Download {
  readonly url: string;
  /** The credentials of the binding, for the hosts that they go to. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxBytes: number;
  readonly sources: MediaSources;
  /** The configured base of the provider's API, which may be the operator's own. */
  readonly base: string;
  readonly signal: AbortSignal;
}

/**
 * A file from one of the provider's own hosts, in memory and never more than `maxBytes`. The addresses come out of
 * messages, so none is opened, and no token shown to it, before the list of hosts allows it.
 * @throws FileUnavailableError
 */
export async function download(request: Download): Promise<FetchedFile> {
  const signal = AbortSignal.any([request.signal, answerDeadline(TIMEOUT_MS)]);
  try {
    const response = await follow({ ...request, signal });
    if (response.status === 404 || response.status === 410)
      throw new FileUnavailableError('gone', 'The provider does not have the file any more.');
    if (!response.ok)
      throw new FileUnavailableError('refused', `The provider answered with status ${String(response.status)} for the file.`);
    return {
      bytes: await readBytes(response, request.maxBytes),
      contentType: response.headers.get('content-type') ?? 'application/octet-stream',
    };
  } catch (error) {
    request.signal.throwIfAborted();
    if (error instanceof FileUnavailableError) throw error;
    throw new FileUnavailableError('unreachable', 'The file could not be fetched from the provider.', { cause: error });
  }
}

async function follow({ url, headers, sources, base, signal }: Download): Promise<Response> {
  const origins = [new URL(base).origin];
  let next = URL.parse(url);
  for (let hop = 0; hop <= MAX_REDIRECTS; hop += 1) {
    const access = next === null ? undefined : mediaAccess(sources, next.href, origins);
    if (next === null || access === undefined)
      throw new FileUnavailableError('host_not_allowed', 'The file is on a host that is not the provider’s.');
    const response = await fetch(next, { redirect: 'manual', ...(access === 'with_token' && headers && { headers }), signal });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    next = URL.parse(location, next.href);
  }
  throw new FileUnavailableError('refused', 'The provider redirects too often.');
}

async function readBytes(response: Response, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of response.body ?? []) {
    length += piece.length;
    if (length > maxBytes) throw new FileUnavailableError('too_large', `The file is larger than ${String(maxBytes)} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
