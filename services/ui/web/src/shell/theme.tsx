import { useEffect, useState, type ReactNode } from 'react';
import { keep, readKept } from '../parts/browser-storage.ts';
import { IconButton } from '../parts/button.tsx';
import { DeviceIcon, MoonIcon, SunIcon } from '../parts/icons.tsx';
import { useWords } from '../words/words.tsx';

type Theme = 'system' | 'light' | 'dark';

const THEME_NAME = 'concierge.theme';
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const themes: readonly Theme[] = ['system', 'light', 'dark'];

function readTheme(): Theme {
  const kept = readKept('localStorage', THEME_NAME);
  return themes.find((theme) => theme === kept) ?? 'system';
}

/** `public/theme.js` follows the device from here on, where that is chosen. */
function applyTheme(theme: Theme): void {
  const dark = theme === 'dark' || (theme === 'system' && systemDark.matches);
  const { dataset } = document.documentElement;
  dataset['chosenTheme'] = theme;
  dataset['theme'] = dark ? 'dark' : 'light';
}

export interface ThemeChoice {
  readonly theme: Theme;
  /** Goes on to the next one. */
  readonly next: () => void;
}

/** The chosen theme: one of the page, kept in the browser. */
export function useTheme(): ThemeChoice {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    keep('localStorage', THEME_NAME, theme);
    applyTheme(theme);
  }, [theme]);
  return { theme, next: () => setTheme(themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system') };
}

export function ThemeButton({ choice: { theme, next } }: { readonly choice: ThemeChoice }): ReactNode {
  const { theme: labels } = useWords().shell;
  return (
    <IconButton label={`${labels[theme]}; ${labels.change}`} onClick={next}>
      {theme === 'system' ? <DeviceIcon /> : theme === 'light' ? <SunIcon /> : <MoonIcon />}
    </IconButton>
  );
}
