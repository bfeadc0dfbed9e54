import { ConciergeError } from '@concierge/client';
import { useState, useSyncExternalStore, type ReactNode } from 'react';
import { CopyButton } from '../parts/button.tsx';
import { useExplain, useWords } from '../words/words.tsx';
import { ownerSession } from './owner-session.ts';
import { unsentWords } from './unsent-words.ts';
import { SignInForm } from './sign-in-form.tsx';

/** Where an owner signs in with a key. `notice`: why again. */
export function OwnerSignIn({ notice }: { readonly notice: ConciergeError | null }): ReactNode {
  const explain = useExplain();
  const words = useWords();
  const unsent = useSyncExternalStore(unsentWords.subscribe, unsentWords.snapshot);
  const [isForTabOnly, setForTabOnly] = useState(false);
  return (
    <SignInForm
      heading="Concierge"
      label={words.signIn.key}
      placeholder="ck_live_…"
      notice={notice === null ? null : `${words.signIn.signedOut} ${explain(notice)}`}
      onSecret={async (key) => {
        if (!key.startsWith('ck_live_')) throw new ConciergeError(words.signIn.noKey, { status: 401, code: 'invalid_key' });
        await ownerSession.signIn(key, isForTabOnly);
      }}
      onWritten={ownerSession.holdSignIn}
      fields={
        <label className="mt-3 flex items-center gap-2 text-sm">
          <input
            type="checkbox"
            className="accent-primary"
            checked={isForTabOnly}
            onChange={(event) => setForTabOnly(event.target.checked)}
          />
          {words.signIn.tabOnly}
        </label>
      }
      help={
        <>
          {unsent.length > 0 && (
            <section aria-label={words.signIn.unsent} className="mb-4">
              <p className="font-medium text-foreground">{words.signIn.unsent}</p>
              {unsent.map((text) => (
                <div key={text} className="mt-1.5 flex items-start gap-1 rounded-lg bg-muted p-2 text-foreground">
                  <p className="max-h-40 min-w-0 flex-1 overflow-y-auto whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</p>
                  <CopyButton text={text} label={words.signIn.copyUnsent} />
                </div>
              ))}
            </section>
          )}
          <p>{isForTabOnly ? words.signIn.tabOnlyHelp : words.signIn.cookieHelp}</p>
          <p className="mt-2">
            {words.signIn.whereFrom} <code className="font-mono text-xs">npm start</code>,{' '}
            <code className="font-mono text-xs">npx concierge key create &lt;tenant&gt; --scope admin</code>
          </p>
        </>
      }
    />
  );
}
