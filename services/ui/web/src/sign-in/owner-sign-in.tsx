import { ConciergeError } from '@concierge/client';
import { useState, type ReactNode } from 'react';
import { useExplain, useWords } from '../words/words.tsx';
import { ownerSession } from './owner-session.ts';
import { SignInForm } from './sign-in-form.tsx';

/** Where an owner signs in with a key. `notice`: why again. */
export function OwnerSignIn({ notice }: { readonly notice: ConciergeError | null }): ReactNode {
  const explain = useExplain();
  const words = useWords();
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
