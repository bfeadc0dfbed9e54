import { ConciergeError } from '@concierge/client';
import { useState, type ReactNode, type SubmitEvent } from 'react';
import { explain } from '../../src/chat/chat-failure.ts';
import { GatewayClient } from '../../src/chat/gateway-client.ts';
import { Button } from './parts/button.tsx';
import { LogoIcon, SpinnerIcon } from './parts/icons.tsx';
import { z } from 'zod';
import { forgetAll, keep, readKept } from './parts/browser-storage.ts';

/** Asks for something that every key but one for cs alone may see. */
async function tryKey(key: string): Promise<SignedIn | string> {
  if (!key.startsWith('ck_live_')) return explain({ code: 'invalid_key', message: 'This is not a key of Concierge.' });
  try {
    await new GatewayClient({ key }).listSessions({ agent: null, origin: null, cursor: null, limit: 1 });
    return { key, reach: 'tenant' };
  } catch (error) {
    const failure = ConciergeError.from(error);
    if (failure.code === 'scope_required') return { key, reach: 'cs' };
    return explain(failure);
  }
}

export interface SignInProps {
  /** Why the user has to sign in again. */
  readonly notice: string | null;
  readonly onSignedIn: (signedIn: SignedIn) => void;
}

export function SignIn({ notice, onSignedIn }: SignInProps): ReactNode {
  const [key, setKey] = useState('');
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState(notice);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefusal(null);
    const outcome = await tryKey(key.trim());
    setBusy(false);
    if (typeof outcome === 'string') setRefusal(outcome);
    else onSignedIn(outcome);
  };

  return (
    <main className="flex h-full items-center justify-center overflow-y-auto bg-sidebar p-4">
      <form className="w-full max-w-sm rounded-2xl border bg-card p-6 shadow-sm" onSubmit={(event) => void submit(event)}>
        <div className="flex items-center gap-2.5">
          <LogoIcon className="size-8" />
          <h1 className="text-xl font-semibold tracking-tight">Concierge</h1>
        </div>
        <label htmlFor="key" className="mt-6 block text-sm font-medium">
          API key
        </label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          autoFocus
          placeholder="ck_live_…"
          aria-invalid={refusal !== null}
          aria-describedby={refusal === null ? 'key-help' : 'key-error key-help'}
          className="mt-1.5 h-10 w-full rounded-lg border border-input bg-background px-3 font-mono text-sm"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        {refusal !== null && (
          <p id="key-error" role="alert" className="mt-2 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
            {refusal}
          </p>
        )}
        <Button type="submit" tone="primary" className="mt-4 h-10 w-full" disabled={busy}>
          {busy && <SpinnerIcon />}
          Sign in
        </Button>
        <p id="key-help" className="mt-5 text-[0.8125rem] leading-relaxed text-muted-foreground">
          The key stays in this tab and is gone when you close it. <code className="font-mono text-xs">npm start</code> prints the keys of
          the demo tenant; for another one, run{' '}
          <code className="font-mono text-xs">npx concierge key create &lt;tenant&gt; --scope admin</code>.
        </p>
      </form>
    </main>
  );
}

/** What the key may do, as far as the page found out: a key for cs alone cannot list conversations. */
const SignedIn = z.object({ key: z.string(), reach: z.enum(['tenant', 'cs']) });
export type SignedIn = z.infer<typeof SignedIn>;

const name = 'concierge.signed-in';

/** The key of this tab. It is kept for the tab's life only, and nowhere else. */
export function loadSignedIn(): SignedIn | null {
  try {
    return SignedIn.parse(JSON.parse(readKept('sessionStorage', name) ?? 'null'));
  } catch {
    return null;
  }
}

export function saveSignedIn(signedIn: SignedIn): void {
  keep('sessionStorage', name, JSON.stringify(signedIn));
}

/** Signing out leaves nothing of the tenant in the tab. */
export function forgetSignedIn(): void {
  forgetAll('sessionStorage');
}
