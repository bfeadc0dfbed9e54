import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useLocation } from 'wouter';
import { useWords } from '../words/words.tsx';

interface EntryLook {
  readonly label: string;
  readonly icon?: ReactNode;
}

/** A page to go to, or something to be done. */
export type PaletteEntry = EntryLook & ({ readonly path: string } | { readonly onChosen: () => void });

export interface PaletteProps {
  readonly entries: readonly PaletteEntry[];
  /** What else is found by words, where something is; null as long as it is looked for. It stays as it was found. */
  readonly useMore?: ((words: string) => readonly PaletteEntry[] | null) | undefined;
}

const nothingMore = (): readonly PaletteEntry[] => [];

/** Goes to a page or a conversation, or does something, by a few letters: Ctrl-K, or Command-K. */
export function Palette(props: PaletteProps): ReactNode {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const listen = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', listen);
    return () => {
      removeEventListener('keydown', listen);
    };
  }, []);
  return isOpen && <PaletteDialog {...props} onClose={() => setOpen(false)} />;
}

function PaletteDialog({ entries, useMore = nothingMore, onClose }: PaletteProps & { readonly onClose: () => void }): ReactNode {
  const { tools, parts } = useWords();
  const words = tools.palette;
  const dialog = useRef<HTMLDialogElement>(null);
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const wanted = text.trim().toLowerCase();
  const more = useMore(wanted);
  // What comes later stands below what is there.
  const found = [...entries.filter(({ label }) => label.toLowerCase().includes(wanted)), ...(more ?? [])];
  const current = Math.min(chosen, found.length - 1);
  const open = (entry: PaletteEntry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    if ('path' in entry) navigate(entry.path);
    else entry.onChosen();
  };
  const steer = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setChosen((current + step + found.length) % Math.max(1, found.length));
    else if (event.key === 'Enter') open(found[current]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      aria-label={words.title}
      className="mx-auto mt-[12vh] w-[min(34rem,calc(100vw-2rem))] rounded-xl border bg-card p-2 text-card-foreground shadow-xl"
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <input
        role="combobox"
        aria-label={words.title}
        aria-expanded
        aria-controls="palette-entries"
        aria-activedescendant={found.length === 0 ? undefined : `palette-${String(current)}`}
        autoComplete="off"
        placeholder={words.placeholder}
        className="h-10 w-full rounded-lg border border-input bg-background px-3 text-sm"
        value={text}
        onChange={({ target }) => {
          setText(target.value);
          setChosen(0);
        }}
        onKeyDown={steer}
      />
      <div id="palette-entries" role="listbox" aria-label={words.found} className="mt-2 max-h-[50vh] overflow-y-auto">
        {found.map((entry, index) => (
          <div
            key={'path' in entry ? entry.path : entry.label}
            id={`palette-${String(index)}`}
            role="option"
            aria-selected={index === current}
            className={`flex min-h-9 cursor-pointer items-center gap-2.5 rounded-lg px-2.5 text-sm ${index === current ? 'bg-primary-soft text-primary' : ''}`}
            onClick={() => open(entry)}
          >
            {entry.icon}
            <span className="truncate">{entry.label}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="p-2 text-sm text-muted-foreground">{more === null ? parts.loading : words.none}</p>}
    </dialog>
  );
}
