import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { AppError } from '@concierge/contract';
import type { GatewayForwarder } from './gateway-forwarder.ts';
import { guardOps } from './ops-guard.ts';
import type { PageFiles } from './page-files.ts';
import { sendProblem } from './send-problem.ts';

export interface AppParts {
  readonly pages: PageFiles;
  readonly forwarder: GatewayForwarder;
  readonly opsTokenIsSet: boolean;
}

/** Answered by the gateway. `/readyz` is among them: a console is ready when its gateway is. */
const forwarded = ['/api', '/v1', '/ops', '/openapi.json', '/docs', '/readyz'];

function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/**
 * Decodes once and resolves dots, so that `/api/../ops` and `/%6fps` are judged as the worst that the gateway may take
 * them for.
 */
function pathOf(request: IncomingMessage): string {
  const target = request.url ?? '/';
  // The absolute form is for proxies that choose a host; this one has a single place to go.
  if (!target.startsWith('/')) throw new AppError('invalid_request', 'The request must name a path.');
  try {
    return decodeURIComponent(new URL(`http://console${target}`).pathname).replaceAll(/\/{2,}/gu, '/');
  } catch (error) {
    throw new AppError('invalid_request', 'The address of the request is not valid.', { cause: error });
  }
}

function answer(parts: AppParts, request: IncomingMessage, response: ServerResponse): void {
  const path = pathOf(request);
  if (path === '/livez') {
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end('{"status":"ok"}');
    return;
  }
  if (!forwarded.some((prefix) => isUnder(path, prefix))) {
    parts.pages.serve(request, response);
    return;
  }
  if (isUnder(path, '/ops')) guardOps(request, parts.opsTokenIsSet);
  parts.forwarder.forward(request, response);
}

/** Everything that the console's port answers: its pages, and what it forwards to the gateway. */
export function createApp(parts: AppParts): RequestListener {
  return (request, response) => {
    try {
      answer(parts, request, response);
    } catch (error) {
      sendProblem(response, error instanceof AppError ? error : new AppError('internal_error', undefined, { cause: error }));
    }
  };
}
