import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { apiReference } from '@scalar/express-api-reference';
import { routes } from '@concierge/contract';
import type { RequestHandler, Response } from 'express';
import { CompressedBytes } from '../http/compressed-bytes.ts';

/** The page's own script, served by us: no remote asset. */
export const docsScriptPath = `${routes.docs.path}/scalar.js`;

const scriptFile = new URL('browser/standalone.js', import.meta.resolve('@scalar/api-reference'));

/** Strict but for styles, which the page's script makes as it runs. */
function buildPolicy(nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Answers with the documentation page: Scalar over /openapi.json. */
export function sendDocsPage(response: Response): void {
  const nonce = randomBytes(16).toString('base64');
  response.setHeader('Content-Security-Policy', buildPolicy(nonce));
  const answer = apiReference({
    cdn: docsScriptPath,
    nonce,
    url: routes.openapi.path,
    pageTitle: 'Concierge API',
    withDefaultFonts: false,
    telemetry: false,
    authentication: { preferredSecurityScheme: 'apiKey' },
    // Kept by the browser for the next visit, in the storage of this origin alone.
    persistAuth: true,
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
  });
  // Scalar's handler does not read the request.
  void answer(response.req as never, response, () => undefined); // eslint-disable-line typescript/no-unsafe-type-assertion -- typed for a request without parameters
}

/** The page's script, read and compressed when it is first asked for. */
export function docsScript(): RequestHandler {
  let script: Promise<CompressedBytes> | undefined;
  return async (request, response) => {
    script ??= readFile(scriptFile).then(async (bytes) => CompressedBytes.from(bytes));
    const type = 'text/javascript; charset=utf-8';
    (await script).send(request, response, { type, cacheControl: 'public, max-age=86400' });
  };
}
