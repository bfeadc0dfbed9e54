import express, { type Express, type RequestHandler } from 'express';
import helmet from 'helmet';
import { AppError, routes, type Route, type RouteId } from '@concierge/contract';
import type { Log } from '@concierge/runtime';
import type { Tenants } from '@concierge/tenant';
import { docsScript, docsScriptPath } from './docs/docs-page.ts';
import type { Handlers } from './http/call.ts';
import { beginRequest } from './http/request-context.ts';
import { handleError } from './http/handle-error.ts';
import type { UntypedHandler, RouteServer } from './http/serve-route.ts';
import { allowPreflight } from './widget/widget-caller.ts';
import type { GatewayMetrics } from './metrics.ts';

export interface AppOptions {
  readonly server: RouteServer;
  readonly handlers: Handlers;
  readonly tenants: Pick<Tenants, 'openWidget'>;
  readonly metrics: GatewayMetrics;
  readonly log: Log;
}

/** Nothing here is for a browser to render, but for the documentation, which brings its own policy. */
const securityHeaders = helmet({
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  // These are for obsolete browsers, or the policy above covers them.
  originAgentCluster: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});

/** The whole HTTP interface: every route of the contract, and an answer for every other path. */
export function createApp({ server, handlers, tenants, metrics, log }: AppOptions): Express {
  const app = express();
  app.disable('x-powered-by');
  app.set('etag', false);
  app.set('query parser', 'simple');
  app.set('case sensitive routing', true);
  app.set('strict routing', true);
  // Nothing here depends on a client's address: no forwarded header is trusted.
  app.set('trust proxy', false);
  app.use(beginRequest(), securityHeaders);
  app.get(docsScriptPath, docsScript());
  mountRoutes(app, { server, handlers, tenants });
  app.use(() => {
    throw new AppError('not_found', 'There is no such page.');
  });
  app.use(handleError({ metrics, log }));
  return app;
}

function mountRoutes(app: Express, { server, handlers, tenants }: Pick<AppOptions, 'server' | 'handlers' | 'tenants'>): void {
  // Express tries one path after the other. Webhooks arrive in the largest bursts, so their paths come first.
  const isSigned = ({ auth }: Route): number => Number(auth === 'signature');
  const inOrder = Object.values<Route>(routes).toSorted((one, other) => isSigned(other) - isSigned(one));
  const byPath = Map.groupBy(inOrder, expressPath);
  for (const [path, all] of byPath) {
    const mounted = app.route(path);
    for (const route of all) mounted[route.method](server.serve(route, findHandler(handlers, route)));
    mounted.options(answerOptions(all, tenants)).all(refuseMethod(all));
  }
}

/**
 * `/api/files/{path}` as Express 5 writes it: `/api/files/*path` for the rest of a path, `/x/:id` otherwise; there,
 * braces mean optional.
 */
function expressPath(route: Route): string {
  const path = route.path.replaceAll(/\{(?<name>\w+)\}/gu, (_match, name: string) => (route.rest === true ? `*${name}` : `:${name}`));
  return route.below === true ? `${path}{/{*below}}` : path;
}

function findHandler(handlers: Handlers, route: Route): UntypedHandler {
  // The request was parsed with the schemas of this route; the compiler cannot infer that.
  return handlers[route.id as RouteId] as unknown as UntypedHandler; // eslint-disable-line typescript/no-unsafe-type-assertion -- see above
}

function allowed(all: readonly Route[]): string {
  const methods = all.flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
  return [...methods, 'OPTIONS'].join(', ');
}

function refuseMethod(all: readonly Route[]): RequestHandler {
  const Allow = allowed(all);
  return (request) => {
    throw new AppError('method_not_allowed', `${request.method} is not possible here.`, { headers: { Allow } });
  };
}

/**
 * Answers the allowed methods. Only the widget's paths get CORS headers: everywhere else browsers of other origins stay
 * out.
 */
function answerOptions(all: readonly Route[], tenants: AppOptions['tenants']): RequestHandler {
  const Allow = allowed(all);
  const isOpen = all.some(({ auth }) => auth === 'widget' || auth === 'visitor');
  return async (request, response) => {
    if (isOpen) await allowPreflight(tenants, request, response);
    response.status(204).setHeader('Allow', Allow).end();
  };
}
