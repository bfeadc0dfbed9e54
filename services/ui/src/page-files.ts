import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { extname, join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream';
import { AppError } from '@concierge/contract';
import { pageHeaders } from './page-headers.ts';
import { sendProblem } from './send-problem.ts';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.json': 'application/json',
};

/** Encodings that the build leaves beside a file, best first. */
const encodings = [
  { name: 'br', suffix: '.br' },
  { name: 'gzip', suffix: '.gz' },
] as const;

interface PageVariant {
  readonly path: string;
  readonly size: number;
}

interface PageFile {
  readonly type: string;
  readonly etag: string;
  readonly cacheControl: string;
  readonly plain: PageVariant;
  readonly encoded: ReadonlyMap<string, PageVariant>;
}

/**
 * The built pages. Every file is known by its exact address from the start, so no request can name another one; the
 * bytes are read when asked for and not kept.
 */
export class PageFiles {
  readonly #files: ReadonlyMap<string, PageFile>;

  private constructor(files: ReadonlyMap<string, PageFile>) {
    this.#files = files;
  }

  /** A folder that does not exist holds no pages: each request is then answered with what to do. */
  static async load(folder: string): Promise<PageFiles> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
    const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const files = new Map<string, PageFile>();
    for (const path of paths) {
      const type = types[extname(path)];
      if (type === undefined) continue;
      const address = `/${relative(folder, path).split(sep).join('/')}`;
      files.set(address, await describe({ path, type, address, present: new Set(paths) }));
    }
    return new PageFiles(files);
  }

  get isBuilt(): boolean {
    return this.#files.has('/index.html');
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      sendProblem(response, new AppError('method_not_allowed', undefined, { headers: { allow: 'GET, HEAD' } }));
      return;
    }
    const file = this.#find(request);
    if (file === undefined) {
      sendProblem(response, this.isBuilt ? new AppError('not_found') : notBuilt());
      return;
    }
    sendFile(request, response, file);
  }

  /** Any address without an extension is a page of the application, which reads it itself. */
  #find(request: IncomingMessage): PageFile | undefined {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    return this.#files.get(path) ?? (extname(path) === '' ? this.#files.get('/index.html') : undefined);
  }
}

function notBuilt(): AppError {
  return new AppError('overloaded', 'The pages of the console have not been built yet: run `node services/ui/build.mjs`.');
}

async function describe({
  path,
  type,
  address,
  present,
}: {
  readonly path: string;
  readonly type: string;
  readonly address: string;
  readonly present: ReadonlySet<string>;
}): Promise<PageFile> {
  const found = encodings.filter(({ suffix }) => present.has(path + suffix));
  const encoded = await Promise.all(found.map(async ({ name, suffix }) => [name, await variant(path + suffix)] as const));
  const digest = createHash('sha256')
    .update(await readFile(path))
    .digest('base64url');
  return {
    type,
    etag: `"${digest.slice(0, 22)}"`,
    // Names under /assets/ carry a hash of what they hold.
    cacheControl: address.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache',
    plain: await variant(path),
    encoded: new Map(encoded),
  };
}

async function variant(path: string): Promise<PageVariant> {
  return { path, size: (await stat(path)).size };
}

function chooseEncoding(request: IncomingMessage, file: PageFile): string | undefined {
  const accepted = String(request.headers['accept-encoding'] ?? '')
    .split(',')
    .filter((part) => !/;\s*q=0(?:\.0*)?\s*$/u.test(part))
    .map((part) => part.split(';', 1)[0]?.trim());
  return encodings.map(({ name }) => name).find((name) => file.encoded.has(name) && accepted.includes(name));
}

function sendFile(request: IncomingMessage, response: ServerResponse, file: PageFile): void {
  const encoding = chooseEncoding(request, file);
  const chosen = (encoding === undefined ? undefined : file.encoded.get(encoding)) ?? file.plain;
  // An encoded form is other bytes, hence another strong tag.
  const etag = encoding === undefined ? file.etag : `"${file.etag.slice(1, -1)}-${encoding}"`;
  const headers: OutgoingHttpHeaders = { ...pageHeaders, etag, 'cache-control': file.cacheControl, vary: 'accept-encoding' };
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, headers).end();
    return;
  }
  response.writeHead(200, {
    ...headers,
    'content-type': file.type,
    'content-length': chosen.size,
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
  });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  // A file that went away in between leaves a cut answer: the length shows that something is missing.
  pipeline(createReadStream(chosen.path), response, () => undefined);
}
