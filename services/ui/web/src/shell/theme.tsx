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

/** The chosen theme, and a function that goes on to the next one. */
function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    keep('localStorage', THEME_NAME, theme);
    applyTheme(theme);
  }, [theme]);
  return [theme, () => setTheme(themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system')];
}

export function ThemeButton(): ReactNode {
  const { theme: labels } = useWords().shell;
  const [theme, next] = useTheme();
  return (
    <IconButton label={`${labels[theme]}; ${labels.change}`} onClick={next}>
      {theme === 'system' ? <DeviceIcon /> : theme === 'light' ? <SunIcon /> : <MoonIcon />}
    </IconButton>
  );
}
