import { ConciergeClient, ConciergeError } from '@concierge/client';
import { z } from 'zod';
import { GatewayClient } from '../../../src/chat/gateway-client.ts';
import { readJson } from '../../../src/json-client.ts';
import { SignedIn, type Reach } from '../../../src/signed-in.ts';
import { forgetAll, keep, readKept } from '../parts/browser-storage.ts';
import { unsentWords } from './unsent-words.ts';
import { TabMessages } from './tab-messages.ts';

/** Who is signed in as a tenant's owner. `key` undefined: the browser's cookie has it. */
export interface Owner {
  readonly key: string | undefined;
  readonly reach: Reach;
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
 * that; and asking again when another tab has changed it.
 */
export class OwnerSession {
  #state: OwnerState = { status: 'asking' };
  readonly #listeners = new Set<() => void>();
  readonly #client = new ConciergeClient({});
  readonly #tabs = new TabMessages('concierge.owner', () => {
    if (this.#state.status === 'signed-in' && this.#state.owner.key !== undefined) return;
    // Another tenant's, perhaps: what is shown goes first.
    this.#change({ status: 'asking' });
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

  get isSignedIn(): boolean {
    return this.#state.status === 'signed-in';
  }

  /** Finds out who is signed in: this tab by itself, or all of them. */
  async load(): Promise<void> {
    const kept = readKeptKey();
    if (kept !== null) {
      this.#change({ status: 'signed-in', owner: kept });
      return;
    }
    try {
      const { reach, id } = await readJson(await this.#client.request('/signed-in'), SignedIn);
      forgetOthers(id);
      this.#change(reach === null ? { status: 'signed-out', notice: null } : { status: 'signed-in', owner: { key: undefined, reach } });
    } catch (error) {
      this.#change({ status: 'signed-out', notice: ConciergeError.from(error) });
    }
  }

  /** @throws ConciergeError why the key is refused */
  async signIn(key: string, isForTabOnly: boolean): Promise<void> {
    if (isForTabOnly) {
      const owner = { key, reach: await findReach(key) };
      forgetOthers(null);
      keep('sessionStorage', NAME, JSON.stringify(owner));
      this.#change({ status: 'signed-in', owner });
      return;
    }
    const { reach, id } = await readJson(await this.#post('/sign-in', { key }), SignedIn);
    forgetOthers(id);
    this.#change({ status: 'signed-in', owner: { key: undefined, reach: reach ?? 'cs' } });
    this.#tabs.send();
  }

  /** Leaves nothing of the tenant in the tab, nor, of a sign-in by cookie, in others. */
  async signOut(notice: ConciergeError | null): Promise<void> {
    const isByCookie = this.#state.status === 'signed-in' && this.#state.owner.key === undefined;
    forgetAll('sessionStorage');
    // First, so that nothing more is asked with it; what is told to other tabs is so only when the cookie is gone.
    this.#change({ status: 'signed-out', notice });
    if (!isByCookie) return;
    await this.#post('/sign-out', {}).catch((error: unknown) => {
      this.#change({ status: 'signed-out', notice: ConciergeError.from(error) });
    });
    this.#tabs.send();
  }

  /** The service has refused the key of a sign-in: it ends, unless another has taken its place meanwhile. */
  async refuse(owner: Owner, failure: ConciergeError): Promise<void> {
    if (this.#state.status === 'signed-in' && this.#state.owner === owner) await this.signOut(failure);
  }

  async #post(path: string, body: object): Promise<Response> {
    return this.#client.request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
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
    return KeptInTab.parse(JSON.parse(readKept('sessionStorage', NAME) ?? 'null'));
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
