import { useEffect, useState, type ComponentProps, type ReactNode } from 'react';
import { useWords } from '../words/words.tsx';
import { CheckIcon, CopyIcon } from './icons.tsx';

type ButtonTone = 'primary' | 'plain' | 'danger' | 'quiet';

const tones: Readonly<Record<ButtonTone, string>> = {
  primary: 'bg-primary text-primary-foreground hover:opacity-90',
  plain: 'border border-input bg-card hover:bg-muted',
  danger: 'bg-danger text-white dark:text-black hover:opacity-90',
  quiet: 'text-muted-foreground hover:bg-muted hover:text-foreground',
};

export function Button({ tone = 'plain', className = '', ...rest }: ComponentProps<'button'> & { readonly tone?: ButtonTone }): ReactNode {
  return (
    <button
      type="button"
      className={`inline-flex min-h-9 items-center justify-center gap-1.5 rounded-lg px-3 text-sm font-medium whitespace-nowrap transition-colors disabled:cursor-not-allowed disabled:opacity-50 ${tones[tone]} ${className}`}
      {...rest}
    />
  );
}

/** A button that shows only a picture; `label` is its name and its hover text. */
export function IconButton({
  label,
  tone = 'quiet',
  className = '',
  ...rest
}: Omit<ComponentProps<'button'>, 'title'> & { readonly label: string; readonly tone?: ButtonTone }): ReactNode {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-flex size-9 shrink-0 items-center justify-center rounded-lg transition-colors disabled:cursor-not-allowed disabled:opacity-40 ${tones[tone]} ${className}`}
      {...rest}
    />
  );
}

const CONFIRMED_MS = 1500;

/** Copies, and confirms it for a moment. */
export function CopyButton({
  text,
  label,
  className = '',
}: {
  readonly text: string;
  readonly label: string;
  readonly className?: string;
}): ReactNode {
  const words = useWords().chat.copy;
  const [outcome, setOutcome] = useState<'copied' | 'failed' | null>(null);
  useEffect(() => {
    if (outcome === null) return undefined;
    const timer = setTimeout(() => setOutcome(null), CONFIRMED_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [outcome]);
  const copy = (): void => {
    copyText(text).then(
      () => setOutcome('copied'),
      () => setOutcome('failed'),
    );
  };
  const name = outcome === null ? label : outcome === 'copied' ? words.done : words.failed;
  return (
    <IconButton label={name} className={`size-7! ${className}`} onClick={copy}>
      {outcome === 'copied' ? <CheckIcon className="size-3.5 text-ok" /> : <CopyIcon className="size-3.5" />}
    </IconButton>
  );
}

/**
 * Puts text on the clipboard; also where the page is not served securely and the clipboard's own interface is missing.
 */
async function copyText(text: string): Promise<void> {
  if (isSecureContext) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  document.body.append(area);
  area.select();
  document.execCommand('copy'); // eslint-disable-line typescript/no-deprecated -- the only way without a secure context
  area.remove();
}
