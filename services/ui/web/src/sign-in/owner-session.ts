import { ConciergeClient, ConciergeError } from '@concierge/client';
import { z } from 'zod';
import { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { readJson } from '../../../src/json-client.ts';
import { SIGN_IN_HEADER, SignedIn, type Reach } from '../../../src/signed-in.ts';
import { forgetAll, keep, readKept } from '../parts/browser-storage.ts';
import { unsentWords } from './unsent-words.ts';
import { TabMessages } from './tab-messages.ts';

/** Who is signed in as a tenant's owner. `key` undefined: the browser's cookie has it. */
export interface Owner {
  readonly key: string | undefined;
  readonly reach: Reach;
  /** Names the sign-in by cookie; null for a key of this tab alone. */
  readonly id: string | null;
}

export type OwnerState =
  | { readonly status: 'asking' }
  /** `notice`: why the owner has to sign in again. */
  | { readonly status: 'signed-out'; readonly notice: ConciergeError | null }
  | { readonly status: 'signed-in'; readonly owner: Owner };

const NAME = 'concierge.signed-in';
/** Whose sign-in by cookie everything else in the tab's storage is of. */
const KEPT_OF = 'concierge.kept-of';
const KeptInTab = z.object({ key: z.string(), reach: z.enum(['tenant', 'cs']) });

/**
 * The owner's sign-in of this tab. By cookie it is that of all tabs: they tell each other when it changes. For this tab
 * alone the key is in the tab's own storage, and goes with it.
 *
 * asking → signed-in | signed-out, when the console has said whether there is a cookie; signed-out ⇄ signed-in after
 * that; and asking again when another tab has changed it, but for a sign-in, which stays until another takes its place.
 */
export class OwnerSession {
  #state: OwnerState = { status: 'asking' };
  readonly #listeners = new Set<() => void>();
  readonly #client = new ConciergeClient({});
  /** The last sign-out, as long as it is under way. */
  #leaving: Promise<void> = Promise.resolve();
  /** Something is written in the sign-in: who signs in elsewhere does not take its place. */
  #isWritten = false;
  readonly #tabs = new TabMessages('concierge.owner', () => {
    if (this.#state.status === 'signed-in' && this.#state.owner.key !== undefined) return;
    // Another tenant's, perhaps: what is shown goes first, but for a sign-in, which shows nothing of a tenant.
    if (this.#state.status !== 'signed-out') this.#change({ status: 'asking' });
    void this.load();
  });

  readonly snapshot = (): OwnerState => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** The service has refused the key: what was being written is not to be lost with it. */
  get isRefused(): boolean {
    return this.#state.status === 'signed-out' && this.#state.notice !== null;
  }

  /** Finds out who is signed in: this tab by itself, or all of them. */
  async load(): Promise<void> {
    const kept = readKeptKey();
    if (kept !== null) {
      this.#change({ status: 'signed-in', owner: kept });
      return;
    }
    const before = this.#state;
    try {
      const { reach, id } = await readJson(await this.#client.request('/signed-in'), SignedIn);
      if (this.#isOvertaken(before, reach === null)) return;
      forgetOthers(id);
      this.#change(reach === null ? { status: 'signed-out', notice: null } : { status: 'signed-in', owner: { key: undefined, reach, id } });
    } catch (error) {
      if (!this.#isOvertaken(before, true)) this.#change({ status: 'signed-out', notice: ConciergeError.from(error) });
    }
  }

  /** Whether what was found is not shown: a sign-in or a sign-out since then is, and a sign-in form stays as it is. */
  #isOvertaken(before: OwnerState, isOut: boolean): boolean {
    if (this.#state !== before) return true;
    return before.status === 'signed-out' && (isOut || this.#isWritten);
  }

  /** Something is written in the sign-in, until what this answers is called: then it asks again who is signed in. */
  readonly holdSignIn = (): (() => void) => {
    this.#isWritten = true;
    return () => {
      this.#isWritten = false;
      if (this.#state.status === 'signed-out') void this.load();
    };
  };

  /** @throws ConciergeError why the key is refused */
  async signIn(key: string, isForTabOnly: boolean): Promise<void> {
    // Overtaken, it would take the cookie of this one, or say late that it has failed.
    await this.#leaving;
    if (isForTabOnly) {
      const owner = { key, reach: await findReach(key), id: null };
      forgetOthers(null);
      keep('sessionStorage', NAME, JSON.stringify(owner));
      this.#change({ status: 'signed-in', owner });
      return;
    }
    const { reach, id } = await readJson(await this.#post('/sign-in', { key }), SignedIn);
    forgetOthers(id);
    this.#change({ status: 'signed-in', owner: { key: undefined, reach: reach ?? 'cs', id } });
    this.#tabs.send();
  }

  /** Leaves nothing of the tenant in the tab, nor, of a sign-in by cookie, in others. */
  async signOut(notice: ConciergeError | null): Promise<void> {
    this.#leaving = this.#leave(notice);
    await this.#leaving;
  }

  /** Never rejects. */
  async #leave(notice: ConciergeError | null): Promise<void> {
    const owner = this.#state.status === 'signed-in' ? this.#state.owner : null;
    forgetAll('sessionStorage');
    // First, so that nothing more is asked with it; what is told to other tabs is so only when the cookie is gone.
    this.#change({ status: 'signed-out', notice });
    if (owner === null || owner.key !== undefined) return;
    // The user signs the browser out, also where another owner is signed in by now.
    const headers = { ...(notice !== null && owner.id !== null && { [SIGN_IN_HEADER]: owner.id }) };
    await this.#post('/sign-out', {}, headers).catch((error: unknown) => {
      this.#change({ status: 'signed-out', notice: ConciergeError.from(error) });
    });
    this.#tabs.send();
  }

  /**
   * The service has refused the key of a sign-in: it ends, unless another has taken its place meanwhile. Where that has
   * happened in another tab, which this one has not heard of, that one is shown.
   */
  async refuse(owner: Owner, failure: ConciergeError): Promise<void> {
    const isOthers = await this.#isOthers(owner);
    if (this.#state.status !== 'signed-in' || this.#state.owner !== owner) return;
    if (!isOthers) {
      await this.signOut(failure);
      return;
    }
    this.#change({ status: 'asking' });
    await this.load();
  }

  /** Whether the cookie is that of another sign-in by now. */
  async #isOthers({ id }: Owner): Promise<boolean> {
    if (id === null) return false;
    try {
      const { id: found } = await readJson(await this.#client.request('/signed-in'), SignedIn);
      return found !== null && found !== id;
    } catch {
      return false;
    }
  }

  async #post(path: string, body: object, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
    return this.#client.request(path, init);
  }

  #change(state: OwnerState): void {
    this.#state = state;
    if (state.status === 'signed-in') unsentWords.forget();
    for (const listener of this.#listeners) listener();
  }
}

/**
 * Forgets what the tab keeps of other sign-ins: a tab that was away hears of no sign-out, and what it had not sent
 * would go to whose sign-in it finds. Null: nothing in it is of this one.
 */
function forgetOthers(id: string | null): void {
  if (id !== null && id === readKept('sessionStorage', KEPT_OF)) return;
  forgetAll('sessionStorage');
  keep('sessionStorage', KEPT_OF, id);
}

function readKeptKey(): Owner | null {
  try {
    return { ...KeptInTab.parse(JSON.parse(readKept('sessionStorage', NAME) ?? 'null')), id: null };
  } catch {
    return null;
  }
}

/** Asks for something that every key but one for cs alone may see. @throws ConciergeError */
async function findReach(key: string): Promise<Reach> {
  try {
    await new GatewayClient({ key }).listSessions({ agent: null, origin: null, cursor: null, limit: 1 });
    return 'tenant';
  } catch (error) {
    const failure = ConciergeError.from(error);
    if (failure.code === 'scope_required') return 'cs';
    throw failure;
  }
}

/** The one of this tab. */
export const ownerSession = new OwnerSession();
