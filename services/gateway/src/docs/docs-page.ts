import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { apiReference } from '@scalar/express-api-reference';
import { routes } from '@concierge/contract';
import type { RequestHandler, Response } from 'express';

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
    hideClientButton: true,
    showDeveloperTools: 'never',
    agent: { disabled: true },
    mcp: { disabled: true },
  });
  // Scalar's handler does not read the request.
  void answer(response.req as never, response, () => undefined); // eslint-disable-line typescript/no-unsafe-type-assertion -- typed for a request without parameters
}

/** The page's script, read when it is first asked for. */
export function docsScript(): RequestHandler {
  let script: Promise<Buffer> | undefined;
  return async (_request, response) => {
    script ??= readFile(scriptFile);
    response.setHeader('Content-Type', 'text/javascript; charset=utf-8');
    response.setHeader('Cache-Control', 'public, max-age=86400');
    response.end(await script);
  };
}
