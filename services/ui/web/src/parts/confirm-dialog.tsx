import { useEffect, useRef, type ReactNode } from 'react';
import { useWords } from '../words/words.tsx';
import { Button } from './button.tsx';

export interface ConfirmDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly busy: boolean;
  readonly error: string | null;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
  /** Of the button that does it; for what can be undone, or destroys nothing, `primary`. */
  readonly tone?: 'danger' | 'primary';
}

/**
 * Asks before something that cannot be undone. The browser's own dialog keeps the focus inside and closes on Escape.
 */
export function ConfirmDialog({
  title,
  children,
  action,
  busy,
  error,
  onConfirm,
  onCancel,
  tone = 'danger',
}: ConfirmDialogProps): ReactNode {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby="confirm-title"
      className="m-auto w-[min(26rem,calc(100vw-2rem))] rounded-xl border bg-card p-5 text-card-foreground shadow-xl"
      onClose={onCancel}
      onClick={(event) => {
        if (event.target === dialog.current) onCancel();
      }}
    >
      <h2 id="confirm-title" className="text-base font-semibold">
        {title}
      </h2>
      <div className="mt-2 text-sm text-muted-foreground">{children}</div>
      {error !== null && (
        <p role="alert" className="mt-3 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
          {error}
        </p>
      )}
      <div className="mt-5 flex justify-end gap-2">
        <Button onClick={onCancel} autoFocus>
          {words.parts.cancel}
        </Button>
        <Button tone={tone} onClick={onConfirm} disabled={busy}>
          {action}
        </Button>
      </div>
    </dialog>
  );
}
