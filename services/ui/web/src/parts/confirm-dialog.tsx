import { useContext, useEffect, useId, useLayoutEffect, useRef, useState, type ComponentProps, type ReactNode } from 'react';
import { useExplain, useWords } from '../words/words.tsx';
import { Button } from './button.tsx';
import { Holding } from './states.tsx';

export interface DialogProps {
  readonly title: string;
  readonly children: ReactNode;
  /** What can be done, at its end. */
  readonly buttons: ReactNode;
  readonly error?: string | null;
  readonly onClose: () => void;
}

/** A box over the page. The browser's own dialog keeps the focus inside and closes on Escape. */
export function Dialog({ title, children, buttons, error = null, onClose }: DialogProps): ReactNode {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const hold = useContext(Holding);
  // What it has done is shown as soon as it is gone.
  useLayoutEffect(() => hold(), [hold]);
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      // A dialog that is taken away while it is open does not give the focus back, as one that is closed does.
      if (document.activeElement === document.body && opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      className="m-auto max-h-[calc(100dvh-2rem)] w-[min(28rem,calc(100vw-2rem))] overflow-y-auto rounded-xl border bg-card p-5 text-left text-card-foreground shadow-xl"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <h2 id={id} className="text-base font-semibold">
        {title}
      </h2>
      <div className="mt-2 text-sm text-muted-foreground">{children}</div>
      {error !== null && (
        <p role="alert" className="mt-3 rounded-lg bg-danger-soft px-3 py-2 text-sm text-danger">
          {error}
        </p>
      )}
      <div className="mt-5 flex justify-end gap-2">{buttons}</div>
    </dialog>
  );
}

export interface ConfirmDialogProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly action: string;
  readonly busy: boolean;
  readonly error: string | null;
  readonly onConfirm: () => void;
  readonly onCancel: () => void;
  /** Of the button that does it; for what destroys nothing, `primary`. */
  readonly tone?: 'danger' | 'primary';
}

/** Asks before something that cannot be undone. */
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
  const buttons = (
    <>
      <Button onClick={onCancel} autoFocus>
        {words.parts.cancel}
      </Button>
      <Button tone={tone} onClick={onConfirm} disabled={busy}>
        {action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} buttons={buttons} error={error} onClose={onCancel}>
      {children}
    </Dialog>
  );
}

export interface ConfirmButtonProps extends Pick<ConfirmDialogProps, 'title' | 'children' | 'action' | 'tone'> {
  /** Of the button that asks. */
  readonly label: string;
  readonly buttonTone?: ComponentProps<typeof Button>['tone'];
  readonly disabled?: boolean;
  /** Rejects with why it could not be done, which the dialog then shows. */
  readonly onConfirm: () => Promise<unknown>;
}

/** A button that asks first, and closes its question when it was done. */
export function ConfirmButton({ label, buttonTone, disabled = false, onConfirm, ...question }: ConfirmButtonProps): ReactNode {
  const explain = useExplain();
  const [isOpen, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const confirm = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      setOpen(false);
    } catch (failure) {
      setError(explain(failure));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <Button {...(buttonTone !== undefined && { tone: buttonTone })} disabled={disabled} onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && (
        <ConfirmDialog
          {...question}
          busy={busy}
          error={error}
          onConfirm={() => void confirm()}
          onCancel={() => {
            setOpen(false);
            setError(null);
          }}
        />
      )}
    </>
  );
}
