import { once } from 'node:events';
import { createServer, request, STATUS_CODES, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { Socket, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError, type ErrorCode } from '@concierge/contract';
import { stoodStillWithin } from '@concierge/runtime';
import { setTimeout as wait } from 'node:timers/promises';
import { answerBroken, problemType, toProblem } from './handle-error.ts';
import { toRequestId } from './request-context.ts';
import type { SharedCounts } from '../processes/shared-counts.ts';

export interface HttpServerOptions {
  readonly app: RequestListener;
  readonly maxConnections: number;
  readonly keepAliveMs: number;
  /** A client that takes nothing of its answer for so long is cut off. */
  readonly unreadAnswerMs: number;
  readonly counts: SharedCounts;
}

const REQUEST_TIMEOUT_MS = 30_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** Even with no grace left, what has been answered gets out. */
const LAST_ANSWERS_MS = 500;

/**
 * Node's server with the time-outs that keep slow senders from holding connections (30 s for a whole request, 15 s for
 * its headers).
 */
export function createHttpServer({ app, maxConnections, keepAliveMs, unreadAnswerMs, counts }: HttpServerOptions): Server {
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: 5000,
    },
    app,
  );
  server.maxConnections = maxConnections;
  if (counts.isShared) limitTogether(server, counts, maxConnections);
  server.on('clientError', refuseBroken);
  server.prependListener('request', (_request, response) => {
    response.setTimeout(unreadAnswerMs).on('timeout', cutOffUnread);
  });
  // Bodies are small and refused by their headers if at all: no need to answer 417 to clients that ask first.
  server.on('checkExpectation', app);
  return server;
}

/** As Node limits the connections of one process: what is beyond the limit is closed. */
function limitTogether(server: Server, counts: SharedCounts, maxConnections: number): void {
  server.on('connection', (socket) => {
    counts.add('connections', 1);
    socket.once('close', () => {
      counts.add('connections', -1);
    });
    if (counts.total('connections') > maxConnections) socket.destroy();
  });
}

/**
 * Node's own timer starts anew whenever the client has taken something, so that a slow client goes on for as long as it
 * likes. One function for all answers: open streams hold what is made for each of them.
 */
function cutOffUnread(socket: Socket): void {
  if (socket.writableLength > 0) socket.destroy();
}

const codeOfParser: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

function toError(code: string): AppError {
  // What this process did not read while it stood still had perhaps arrived.
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT' && stoodStillWithin(REQUEST_TIMEOUT_MS))
    return new AppError('overloaded', undefined, { retryAfterSeconds: 1 });
  return new AppError(codeOfParser[code] ?? 'invalid_request');
}

/**
 * Clients open connections ahead and may use none of them. An answer to nothing would be taken for that to a request
 * which is on its way right now; that a connection was closed is tried again.
 */
function isUnused(socket: Duplex): boolean {
  return socket instanceof Socket && socket.bytesRead === 0;
}

/** Answers a malformed request: Express never sees it, so its problem is written by hand. */
function refuseBroken(failure: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || failure.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const requestId = toRequestId(undefined);
  const error = toError(failure.code ?? '');
  if (error.code === 'request_timeout' && isUnused(socket)) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(toProblem(error, requestId));
  const head = [
    `HTTP/1.1 ${String(error.status)} ${STATUS_CODES[error.status] ?? ''}`,
    `Content-Type: ${problemType}`,
    `Content-Length: ${String(Buffer.byteLength(body))}`,
    `X-Request-Id: ${requestId}`,
    'Cache-Control: no-store',
    'Connection: close',
    ...(error.retryAfterSeconds === undefined ? [] : [`Retry-After: ${String(error.retryAfterSeconds)}`]),
  ];
  answerBroken(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
}

export async function listen(
  server: Server,
  { port, host }: { readonly port: number; readonly host: string | undefined },
): Promise<number> {
  server.listen({ port, host, backlog: 4096 });
  await once(server, 'listening');
  return readAddress(server).port;
}

function readAddress(server: Server): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address;
}

export interface StopOptions {
  readonly drain: Drain;
  /** What is still sent when the grace is over. */
  readonly streams: Disposable;
  /**
   * How long it goes on serving, not ready any more, before it refuses new work, and for how long where readiness is
   * asked for and was not refused often enough yet. Part of the grace.
   */
  readonly leaveMs: number;
  readonly leaveAtMostMs: number;
  /** From then on nothing is accepted: another gateway takes over the port. */
  readonly orphaned: AbortSignal;
}

/**
 * Returns the function that stops the server, in this order: it is not ready any more, and connections are closed with
 * their next answer; new turns are refused (503, so that a client goes
 * elsewhere), replies of running turns go on until they end or the grace is over, then no connection is accepted any
 * more and what is still being answered is finished.
 */
export function httpDrain(
  server: Server,
  { drain, streams, leaveMs, leaveAtMostMs, orphaned }: StopOptions,
): (graceMs: number) => Promise<void> {
  const silent = silentConnections(server);
  server.prependListener('request', (_request, response) => {
    drain.closeAfter(response);
  });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => (closing ??= closeServer(server));
  orphaned.addEventListener('abort', () => void close());
  return async (graceMs) => {
    const untilMs = Date.now() + graceMs;
    await drain.leave({ forMs: Math.min(leaveMs, graceMs), atMostMs: Math.min(leaveAtMostMs, graceMs) });
    await acceptWaiting(server);
    await drain.run(Math.max(0, untilMs - Date.now()));
    streams[Symbol.dispose]();
    await acceptWaiting(server);
    const closed = close();
    server.closeIdleConnections();
    for (const socket of silent.keys()) socket.destroy();
    const deadline = setTimeout(
      () => {
        server.closeAllConnections();
      },
      Math.max(LAST_ANSWERS_MS, untilMs - Date.now()),
    );
    await closed;
    clearTimeout(deadline);
  };
}

/** A process that cannot accept what waits in this time leaves without. */
const ACCEPT_WAITING_MS = 2000;

/**
 * Resolves when the connections that the system holds for this process are accepted and read: closing the port resets
 * them, and libuv accepts one in each turn of the event loop, so that a busy process has many. It asks itself for an
 * answer over a connection that waits behind all of them.
 */
async function acceptWaiting(server: Server): Promise<void> {
  if (!server.listening) return;
  const { address, port } = readAddress(server);
  const host = address === '::' || address === '0.0.0.0' ? 'localhost' : address;
  await new Promise<void>((resolve) => {
    const asked = request({ host, port, path: '/livez', agent: false, timeout: ACCEPT_WAITING_MS }, (response) => {
      response.resume();
      resolve();
    });
    asked.on('error', () => {
      resolve();
    });
    asked.on('timeout', () => {
      asked.destroy();
      resolve();
    });
    asked.end();
  });
}

/** Accepts no connection any more; resolves when the last one is closed. */
async function closeServer(server: Server): Promise<void> {
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
}

/**
 * Connections on which nothing has been asked yet: Node counts them as busy, so `close` would wait for them through the
 * whole grace. A connection that asks loses its listener, 270 bytes that each open stream would hold.
 */
function silentConnections(server: Server): ReadonlyMap<Socket, unknown> {
  const silent = new Map<Socket, () => void>();
  server.on('connection', (socket) => {
    const forget = (): void => void silent.delete(socket);
    silent.set(socket, forget);
    socket.on('close', forget);
  });
  server.prependListener('request', ({ socket }) => {
    const forget = silent.get(socket);
    if (forget === undefined) return;
    socket.off('close', forget);
    forget();
  });
  return silent;
}

/** The balancer takes a gateway out after two refusals (infra/balancer); the third comes when it has done so. */
const REFUSALS = 3;
const LOOK_MS = 50;

/**
 * The phases in which a service stops: serving → leaving (not ready any more, so that the balancer sends nothing new;
 * what still comes is served) → draining (no new work; replies that wait for a turn go on) → ended (replies that still
 * wait are ended with an error).
 */
export class Drain {
  readonly #counts: SharedCounts;
  readonly #end = new AbortController();
  #asked = false;
  #leaving = false;
  #draining = false;
  #replies = 0;
  #onIdle: (() => void) | undefined;

  /** `counts`: over all processes of the gateway, any of which may be asked for readiness. */
  constructor(counts: SharedCounts) {
    this.#counts = counts;
  }

  /** Readiness is asked for: whether it is refused because the service leaves. */
  refuseReadiness(): boolean {
    if (!this.#asked) this.#counts.add('asked for readiness', 1);
    this.#asked = true;
    if (this.#leaving) this.#counts.add('readiness refused', 1);
    return this.#leaving;
  }

  /** From here on the service reports not ready. */
  get leaving(): boolean {
    return this.#leaving;
  }

  /**
   * Has the client of an answer that has not begun open its next connection elsewhere: one that stayed open would be
   * closed when its next request may already be on its way. Called when a request comes, and again when it was handled:
   * the service may have begun to leave in between.
   */
  closeAfter(response: ServerResponse): void {
    if (this.#leaving) response.shouldKeepAlive = false;
  }

  /** Aborts, with an AppError `shutting_down`, when the grace is over. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** Like `hold`, for a request that waits for a turn, until it is disposed of. @throws AppError `shutting_down` */
  admit(): Disposable {
    if (this.#draining) throw shuttingDown();
    this.hold();
    return {
      [Symbol.dispose]: () => {
        this.letGo();
      },
    };
  }

  /** A reply waits for its turn; `letGo` when it does no longer. */
  hold(): void {
    this.#replies += 1;
  }

  letGo(): void {
    this.#replies -= 1;
    if (this.#replies === 0) this.#onIdle?.();
  }

  /**
   * Resolves after the time that the balancer has to notice. Where readiness is asked for it also waits until it was
   * refused often enough, `atMostMs` in all: on a busy machine a balancer's looks come late.
   */
  async leave({ forMs, atMostMs }: { readonly forMs: number; readonly atMostMs: number }): Promise<void> {
    this.#leaving = true;
    const startedMs = performance.now();
    if (forMs > 0) await wait(forMs);
    while (this.#isAskedInVain() && performance.now() - startedMs < atMostMs) await wait(LOOK_MS);
  }

  #isAskedInVain(): boolean {
    return this.#counts.total('asked for readiness') > 0 && this.#counts.total('readiness refused') < REFUSALS;
  }

  /** Resolves when no reply waits any more: all have ended by themselves, or were ended after the grace. */
  async run(graceMs: number): Promise<void> {
    this.#leaving = true;
    this.#draining = true;
    const { promise: idle, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    if (this.#replies === 0) resolve();
    const deadline = setTimeout(() => {
      this.#end.abort(shuttingDown());
    }, graceMs);
    await idle;
    clearTimeout(deadline);
  }
}

function shuttingDown(): AppError {
  return new AppError('shutting_down', undefined, { retryAfterSeconds: 2 });
}
