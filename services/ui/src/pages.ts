import type { Stats } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { extname, relative, sep } from 'node:path';
import { AppError } from '@concierge/contract';
import type { RequestHandler } from 'express';
import serveStatic from 'express-static-gzip';

/**
 * Nothing but our own files runs, is shown or is asked; pictures may also be previews of what is about to be sent
 * (`blob:`).
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The preview of the widget: shown by the console alone, an origin of its own, and without a way to send anything. */
const previewPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  'sandbox allow-scripts',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'self'",
].join('; ');
const previewPage = 'widget-preview.html';
const previewScript = 'widget-preview.js';

/** Sent with every page and asset. What the gateway answers keeps its own headers. */
const pageHeaders = new Map([
  ['content-security-policy', contentSecurityPolicy],
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['permissions-policy', 'camera=(), microphone=(), geolocation=()'],
  // A link in a model's text would otherwise be looked up before anyone clicks it.
  ['x-dns-prefetch-control', 'off'],
  ['vary', 'accept-encoding'],
]);

/** `path` is relative to the folder of the pages. */
function setHeaders(response: ServerResponse, path: string, { size, ctimeMs }: Stats): void {
  response.setHeaders(pageHeaders);
  const page = path.replace(/\.(?:br|gz)$/u, '');
  if (page === previewPage) {
    response.setHeader('content-security-policy', previewPolicy);
    response.setHeader('x-frame-options', 'SAMEORIGIN');
  }
  // Asked for from the origin of the frame, which is none.
  if (page === previewScript) response.setHeader('cross-origin-resource-policy', 'cross-origin');
  // Names under assets/ carry a hash of what they hold.
  response.setHeader('cache-control', path.startsWith(`assets${sep}`) ? 'public, max-age=31536000, immutable' : 'no-cache');
  // An encoded form is other bytes, hence another strong tag. Not the time of modification: some builds of images set
  // one for all files, and two builds of index.html have the same size.
  response.setHeader('etag', `"${String(size)}-${String(ctimeMs)}${extname(path)}"`);
}

/** Answers with the built pages in `folder`, in the forms that the build compressed where the browser accepts one. */
export function servePages(folder: string, isBuilt: boolean): RequestHandler {
  const sendFile = serveStatic(folder, {
    enableBrotli: true,
    orderPreference: ['br', 'gzip'],
    serveStatic: {
      acceptRanges: false,
      cacheControl: false,
      lastModified: false,
      redirect: false,
      setHeaders: (response: ServerResponse, path: string, stats: Stats) => setHeaders(response, relative(folder, path), stats),
    },
  });
  return (request, response, next) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new AppError('method_not_allowed', undefined, { headers: { allow: 'GET, HEAD' } });
    if (!isBuilt) throw new AppError('overloaded', 'The pages of the console have not been built yet: run `node services/ui/build.mjs`.');
    const extension = extname(request.path);
    // A compressed form has no address.
    if (extension === '.br' || extension === '.gz') throw new AppError('not_found');
    // Any address without an extension is a page of the application, which reads it itself.
    if (extension === '') request.url = '/index.html';
    // A tag that matches is answered with 304 also on a reload: the tag alone says whether the file is the same.
    delete request.headers['cache-control'];
    sendFile(request, response, (error?: unknown) => {
      response.removeHeader('content-encoding');
      next(error ?? new AppError('not_found'));
    });
  };
}
