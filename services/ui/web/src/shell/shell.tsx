import { Suspense, useEffect, useRef, useState, type ReactNode } from 'react';
import { ErrorBoundary } from 'react-error-boundary';
import { Link, useLocation } from 'wouter';
import { mayLeave } from '../navigation.ts';
import { IconButton } from '../parts/button.tsx';
import { CloseIcon, DeviceIcon, LogoIcon, MenuIcon, SignOutIcon } from '../parts/icons.tsx';
import { Loading } from '../parts/states.tsx';
import { LanguageChoice, useWords } from '../words/words.tsx';
import { Broken } from './broken.tsx';
import { Palette, type PaletteEntry, type PaletteProps } from './palette.tsx';
import { ThemeButton, useTheme, type ThemeChoice } from './theme.tsx';

export interface NavigationItem {
  /** Where it leads; pages below it count as it. */
  readonly path: string;
  readonly label: string;
  readonly icon: ReactNode;
  /** What waits there; nothing is shown for 0. */
  readonly count?: number | undefined;
}

export interface ShellProps {
  /** Whose console this is, beside the name of the product. */
  readonly title: string;
  readonly items: readonly NavigationItem[];
  /** The first of the paths, under which only the same address is the current page. */
  readonly home: string;
  readonly onSignOut: () => void;
  /** What Ctrl-K can do or opens beside the pages. */
  readonly actions?: readonly PaletteEntry[];
  /** What else it finds by words. */
  readonly useMore?: PaletteProps['useMore'];
  readonly children: ReactNode;
}

/** The frame of every page: navigation beside it, on a narrow screen behind a button. */
export function Shell({ title, items, home, onSignOut, actions = [], useMore, children }: ShellProps): ReactNode {
  const words = useWords();
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const theme = useTheme();
  const signOut = (): void => {
    if (mayLeave()) onSignOut();
  };
  const entries: readonly PaletteEntry[] = [
    ...items,
    ...actions,
    { label: words.tools.palette.theme, icon: <DeviceIcon />, onChosen: theme.next },
    { label: words.shell.signOut, icon: <SignOutIcon />, onChosen: signOut },
  ];
  return (
    <div className="flex h-full flex-col lg:flex-row">
      <a
        href="#page"
        className="sr-only focus:not-sr-only focus:absolute focus:z-40 focus:m-2 focus:rounded-lg focus:bg-card focus:p-2"
        onClick={(event) => {
          event.preventDefault();
          document.querySelector<HTMLElement>('#page')?.focus();
        }}
      >
        {words.shell.skip}
      </a>
      <header className="flex min-h-12 items-center gap-2 border-b bg-sidebar px-2 lg:hidden">
        <IconButton label={words.shell.menu} aria-expanded={isOpen} onClick={() => setOpen(true)}>
          <MenuIcon />
        </IconButton>
        <LogoIcon className="size-5" />
        <span className="truncate text-sm font-semibold">{title}</span>
      </header>
      <Sidebar isOpen={isOpen} onClose={() => setOpen(false)} title={title} theme={theme} onSignOut={signOut}>
        {items.map((item) => (
          <NavigationLink
            key={item.path}
            item={item}
            isCurrent={path === item.path || (item.path !== home && path.startsWith(`${item.path}/`))}
            onChosen={() => setOpen(false)}
          />
        ))}
      </Sidebar>
      <Palette entries={entries} useMore={useMore} />
      <div id="page" tabIndex={-1} className="min-h-0 min-w-0 flex-1 outline-none">
        {/* Another address is another page, which may well work. */}
        <ErrorBoundary FallbackComponent={Broken} resetKeys={[path]}>
          <Suspense fallback={<Loading />}>{children}</Suspense>
        </ErrorBoundary>
      </div>
    </div>
  );
}

interface SidebarProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly theme: ThemeChoice;
  readonly onSignOut: () => void;
  readonly children: ReactNode;
}

/** Beside the page on a wide screen; on a narrow one a dialog over it, which keeps the focus while it is open. */
function Sidebar({ isOpen, onClose, title, theme, onSignOut, children }: SidebarProps): ReactNode {
  const words = useWords();
  const drawer = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen) drawer.current?.showModal();
    else drawer.current?.close();
  }, [isOpen]);
  const inner = (
    <>
      <div className="flex min-h-12 items-center gap-2 px-3">
        <LogoIcon className="size-5" />
        <span className="flex-1 truncate text-sm font-semibold tracking-tight">{title}</span>
        <IconButton label={words.shell.closeMenu} className="lg:hidden" onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </div>
      <nav aria-label={words.shell.navigation} className="min-h-0 flex-1 overflow-y-auto px-2">
        <ul className="space-y-px">{children}</ul>
      </nav>
      <div className="flex flex-wrap items-center gap-1 border-t px-2 py-1.5">
        <ThemeButton choice={theme} />
        <LanguageChoice />
        <IconButton label={words.shell.signOut} className="ml-auto" onClick={onSignOut}>
          <SignOutIcon />
        </IconButton>
      </div>
    </>
  );
  return (
    <>
      <aside aria-label={words.shell.sidebar} className="hidden w-60 shrink-0 flex-col border-r bg-sidebar lg:flex">
        {inner}
      </aside>
      <dialog
        ref={drawer}
        aria-label={words.shell.menu}
        className="m-0 h-full max-h-none w-64 max-w-[85vw] flex-col border-r bg-sidebar text-foreground shadow-xl open:flex lg:hidden!"
        onClose={onClose}
        onClick={(event) => {
          if (event.target === drawer.current) onClose();
        }}
      >
        {isOpen && inner}
      </dialog>
    </>
  );
}

interface NavigationLinkProps {
  readonly item: NavigationItem;
  readonly isCurrent: boolean;
  readonly onChosen: () => void;
}

function NavigationLink({ item, isCurrent, onChosen }: NavigationLinkProps): ReactNode {
  const { path, label, icon, count = 0 } = item;
  const className = `flex min-h-9 items-center gap-2.5 rounded-lg px-2.5 text-sm ${isCurrent ? 'bg-primary-soft font-medium text-primary' : 'text-muted-foreground hover:bg-muted hover:text-foreground'}`;
  return (
    <li>
      <Link href={path} aria-current={isCurrent ? 'page' : undefined} className={className} onClick={onChosen}>
        {icon}
        <span className="min-w-0 flex-1 truncate">{label}</span>
        {count > 0 && <span className="rounded-full bg-warn-soft px-1.5 text-xs font-medium text-warn tabular-nums">{count}</span>}
      </Link>
    </li>
  );
}
