import { useEffect, useId, useState, type ReactNode, type SubmitEvent } from 'react';
import { Button } from '../parts/button.tsx';
import { LogoIcon, SpinnerIcon } from '../parts/icons.tsx';
import { useExplain, useWords } from '../words/words.tsx';

export interface SignInFormProps {
  /** Who signs in here. */
  readonly heading: string;
  readonly label: string;
  readonly placeholder: string;
  /** Why the user has to sign in again. */
  readonly notice: string | null;
  /** Rejects with why the secret is refused. */
  readonly onSecret: (secret: string) => Promise<void>;
  /** More fields, between the secret and the button. */
  readonly fields?: ReactNode;
  /** Something is written in it, until what this answers is called. */
  readonly onWritten?: () => () => void;
  readonly help: ReactNode;
}

/** A page with one secret to enter: an owner's key or the operators' token. */
export function SignInForm({ heading, label, placeholder, notice, onSecret, fields, onWritten, help }: SignInFormProps): ReactNode {
  const explain = useExplain();
  const words = useWords();
  const id = useId();
  const [secret, setSecret] = useState('');
  const [busy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState(notice);
  const isWritten = secret !== '';
  useEffect(() => (isWritten ? onWritten?.() : undefined), [isWritten, onWritten]);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setRefusal(null);
    try {
      await onSecret(secret.trim());
    } catch (error) {
      setRefusal(explain(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="flex h-full items-center justify-center overflow-y-auto bg-sidebar p-4">
      <form className="w-full max-w-sm rounded-2xl border bg-card p-6 shadow-sm" onSubmit={(event) => void submit(event)}>
        <div className="flex items-center gap-2.5">
          <LogoIcon className="size-8" />
          <h1 className="text-xl font-semibold tracking-tight">{heading}</h1>
        </div>
        <label htmlFor={id} className="mt-6 block text-sm font-medium">
          {label}
        </label>
        <input
          id={id}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          autoFocus
          placeholder={placeholder}
          aria-invalid={refusal !== null}
          aria-describedby={refusal === null ? `${id}-help` : `${id}-error ${id}-help`}
          className="mt-1.5 h-10 w-full rounded-lg border border-input bg-background px-3 font-mono text-sm placeholder:leading-normal"
          value={secret}
          onChange={(event) => setSecret(event.target.value)}
        />
        {refusal !== null && (
          <p id={`${id}-error`} role="alert" className="mt-2 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
            {refusal}
          </p>
        )}
        {fields}
        <Button type="submit" tone="primary" className="mt-4 h-10 w-full" disabled={busy}>
          {busy && <SpinnerIcon />}
          {words.signIn.signIn}
        </Button>
        <div id={`${id}-help`} className="mt-5 text-[0.8125rem] leading-relaxed text-muted-foreground">
          {help}
        </div>
      </form>
    </main>
  );
}
