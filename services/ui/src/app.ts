import type { IncomingMessage } from 'node:http';
import { AppError } from '@concierge/contract';
import { readVersion } from '@concierge/runtime/process';
import compression from 'compression';
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import type { GatewayProxy } from './gateway-proxy.ts';
import type { OwnerSignIn } from './owner-sign-in.ts';
import { sendProblem } from './send-problem.ts';

export interface AppParts {
  readonly pages: RequestHandler;
  readonly gateway: GatewayProxy;
  readonly signIn: OwnerSignIn;
  readonly opsTokenIsSet: boolean;
}

/** Answered by the gateway. `/readyz` is among them: a console is ready when its gateway is. */
const forwarded = ['/api', '/v1', '/ops', '/openapi.json', '/docs', '/readyz'];
const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/**
 * Decodes once and resolves dots, so that `/api/../ops` and `/%6fps` are judged as the worst that the gateway may take
 * them for. Express matches addresses as they come.
 */
function readPath(request: IncomingMessage): string {
  const target = request.url ?? '/';
  // The absolute form is for proxies that choose a host; this one has a single place to go.
  if (!target.startsWith('/')) throw new AppError('invalid_request', 'The request must name a path.');
  try {
    return decodeURIComponent(new URL(`http://console${target}`).pathname).replaceAll(/\/{2,}/gu, '/');
  } catch (error) {
    throw new AppError('invalid_request', 'The address of the request is not valid.', { cause: error });
  }
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address === '::1' || /^(?:::ffff:)?127\./u.test(address));
}

/** The name without its port; a page of another site that resolves to this machine (DNS rebinding) cannot forge it. */
function hostName(request: IncomingMessage): string {
  return (request.headers.host ?? '').replace(/:\d+$/u, '').toLowerCase();
}

/**
 * Without an operators' token the gateway answers its ops pages on loopback only, and a forwarded request always comes
 * from there: so the console itself must ask where it came from.
 * @throws AppError not_found when the request may not be forwarded
 */
function guardOps(request: IncomingMessage, opsTokenIsSet: boolean): void {
  if (opsTokenIsSet) return;
  const direct = request.headers['x-forwarded-for'] === undefined && request.headers.forwarded === undefined;
  if (direct && isLoopback(request.socket.remoteAddress) && loopbackHosts.has(hostName(request))) return;
  throw new AppError('not_found', 'The operations pages answer on this machine only, unless OPS_TOKEN is set.');
}

function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  // What Express and its libraries throw for a bad request says so by its status.
  const isRefusal = error instanceof Error && 'status' in error && typeof error.status === 'number' && error.status < 500;
  return new AppError(isRefusal ? 'invalid_request' : 'internal_error', undefined, { cause: error });
}

// Express knows an error handler by its four parameters.
// eslint-disable-next-line max-params -- see above
const handleError: ErrorRequestHandler = (error: unknown, _request, response, _next) => {
  if (response.headersSent) response.destroy();
  else sendProblem(response, toAppError(error));
};

/** Not event streams: each event is to be there at once. Pages and scripts are stored compressed (`pages.ts`). */
function isCompressed(request: express.Request, response: express.Response): boolean {
  const type = response.getHeader('content-type');
  return !(typeof type === 'string' && type.startsWith('text/event-stream')) && compression.filter(request, response);
}

/** Everything that the console's port answers: its pages, signing in, and what it forwards to the gateway. */
export function createApp({ pages, gateway, signIn, opsTokenIsSet }: AppParts): Express {
  const app = express();
  app.disable('x-powered-by');
  app.use(compression({ filter: isCompressed }));
  app.use(signIn.routes());
  app.use((request, response, next) => {
    const path = readPath(request);
    if (path === '/livez') {
      response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
      response.end(JSON.stringify({ status: 'ok', ...readVersion() }));
    } else if (forwarded.some((prefix) => isUnder(path, prefix))) {
      if (isUnder(path, '/ops')) guardOps(request, opsTokenIsSet);
      signIn.addKey(request);
      gateway.forward(request, response, next);
    } else {
      pages(request, response, next);
    }
  });
  app.use(handleError);
  return app;
}
