import { createHash, randomBytes } from 'node:crypto';
import { AppError, Problem } from '@concierge/contract';
import {
  answerDeadline,
  buildCookie,
  mayActByCookie,
  omitCookie,
  readCookie,
  Sealer,
  type BrowserRequest,
} from '@concierge/runtime/process';
import express, { Router, type Request, type Response } from 'express';
import { SealedSignIn, SIGN_IN_HEADER, SignInBody, type Reach, type SignedIn } from './signed-in.ts';

const COOKIE = { name: 'concierge_key', path: '/' } as const;
const LIFE_S = 12 * 3600;
/** Less than a page waits, so that it hears why: a gateway that has much to do takes seconds. */
const CHECK_TIMEOUT_MS = 25_000;
/** What a header can carry, and every key consists of. */
const visibleAscii = /^[!-~]+$/u;
/** Every key but one for cs alone may ask for it. */
const CHECK_PATH = '/api/sessions?limit=1';

export interface OwnerSignInOptions {
  /** CONSOLE_SECRET: consoles that share it open each other's cookies. Without one, sign-ins end with this process. */
  readonly secret: string | undefined;
  readonly gatewayUrl: URL;
  readonly now?: () => number;
}

/**
 * Signs owners in: their key goes, sealed, into a cookie that no script can read, and what a browser asks of the API
 * with that cookie gets the key as its `X-API-Key`.
 */
export class OwnerSignIn {
  readonly #sealer: Sealer;
  readonly #gateway: URL;
  readonly #now: () => number;

  constructor({ secret, gatewayUrl, now = Date.now }: OwnerSignInOptions) {
    this.#sealer = new Sealer(secret ?? randomBytes(32).toString('base64url'), 'concierge console sign-in');
    this.#gateway = gatewayUrl;
    this.#now = now;
  }

  /** The addresses that are about signing in. */
  routes(): Router {
    return Router()
      .post('/sign-in', express.json({ limit: '4kb' }), async (request, response) => this.#signIn(request, response))
      .post('/sign-out', (request, response) => this.#signOut(request, response))
      .get('/signed-in', (request, response) => sendSignedIn(response, this.#find(request)));
  }

  /**
   * Adds the key of the cookie to a request that brings none along, and takes the cookie out of it. Not to one that was
   * begun with another sign-in than the cookie's.
   */
  addKey(request: BrowserRequest): void {
    const { headers } = request;
    const cookie = omitCookie(request, COOKIE.name);
    const hasOwn = headers['x-api-key'] !== undefined || headers.authorization !== undefined;
    const key = hasOwn || !mayActByCookie(request) ? undefined : this.#open(request)?.key;
    const begunWith = headers[SIGN_IN_HEADER];
    if (key !== undefined && (begunWith === undefined || begunWith === identify(key))) headers['x-api-key'] = key;
    Reflect.deleteProperty(headers, SIGN_IN_HEADER);
    if (cookie === undefined) delete headers.cookie;
    else headers.cookie = cookie;
  }

  async #signIn(request: Request, response: Response): Promise<void> {
    const body = SignInBody.safeParse(request.body);
    if (!body.success) throw new AppError('invalid_request', 'The body must be JSON with the field key.');
    const { key } = body.data;
    const reach = await this.#checkKey(key);
    const signIn: SealedSignIn = { key, reach, untilMs: this.#now() + LIFE_S * 1000 };
    const value = this.#sealer.seal(COOKIE.name, JSON.stringify(signIn));
    response.setHeader('set-cookie', buildCookie(request, { ...COOKIE, value, maxAgeS: LIFE_S }));
    sendSignedIn(response, { reach, id: identify(key) });
  }

  /** @throws AppError the gateway's refusal */
  async #checkKey(key: string): Promise<Reach> {
    if (!visibleAscii.test(key)) throw new AppError('invalid_key', 'A key has only letters, digits and marks of ASCII: copy it whole.');
    const headers = { 'x-api-key': key };
    const answer = await this.#ask(headers);
    if (answer.ok) return 'tenant';
    const problem = Problem.safeParse(await answer.json().catch(() => null));
    if (!problem.success) throw new AppError('overloaded', 'The gateway gave an answer that the console does not understand. Try again.');
    if (problem.data.code === 'scope_required') return 'cs';
    throw new AppError(problem.data.code, problem.data.detail);
  }

  async #ask(headers: Readonly<Record<string, string>>): Promise<globalThis.Response> {
    try {
      return await fetch(new URL(CHECK_PATH, this.#gateway), { headers, signal: answerDeadline(CHECK_TIMEOUT_MS) });
    } catch (error) {
      throw new AppError('overloaded', 'The console cannot reach the gateway at the moment. Check that it runs, then try again.', {
        cause: error,
        retryAfterSeconds: 2,
      });
    }
  }

  #signOut(request: Request, response: Response): void {
    if (!mayActByCookie(request)) throw new AppError('invalid_request', 'Only a page of this console may sign out.');
    const found = this.#find(request);
    const begunWith = request.headers[SIGN_IN_HEADER];
    // A page whose key was refused ends its own sign-in, however late it is heard, and not the one in its place.
    if (begunWith !== undefined && found.id !== null && begunWith !== found.id) {
      sendSignedIn(response, found);
      return;
    }
    response.setHeader('set-cookie', buildCookie(request, { ...COOKIE, value: '', maxAgeS: 0 }));
    sendSignedIn(response, { reach: null, id: null });
  }

  #find(request: BrowserRequest): SignedIn {
    const signIn = this.#open(request);
    return signIn === undefined ? { reach: null, id: null } : { reach: signIn.reach, id: identify(signIn.key) };
  }

  /** Undefined without a cookie, and for one that is too old or of another secret. */
  #open(request: BrowserRequest): SealedSignIn | undefined {
    const sealed = readCookie(request, COOKIE.name);
    if (sealed === undefined) return undefined;
    try {
      const signIn = SealedSignIn.parse(JSON.parse(this.#sealer.open(COOKIE.name, sealed)));
      return signIn.untilMs > this.#now() ? signIn : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Names a key, the same at each sign-in with it: keys are drawn at random, so the name leads back to none. */
function identify(key: string): string {
  return createHash('sha256').update('concierge console\n').update(key).digest('base64url');
}

function sendSignedIn(response: Response, signedIn: SignedIn): void {
  response.set({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }).json(signedIn);
}
