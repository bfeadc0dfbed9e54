import { useEffect, useState } from 'react';
import { keep, readKept } from './browser-storage.ts';

export type Theme = 'system' | 'light' | 'dark';

const name = 'concierge.theme';
const systemDark = matchMedia('(prefers-color-scheme: dark)');
const order: readonly Theme[] = ['system', 'light', 'dark'];

function stored(): Theme {
  const kept = readKept('localStorage', name);
  return order.find((theme) => theme === kept) ?? 'system';
}

function apply(theme: Theme): void {
  const dark = theme === 'dark' || (theme === 'system' && systemDark.matches);
  document.documentElement.dataset['theme'] = dark ? 'dark' : 'light';
}

/**
 * The chosen theme, and a function that goes on to the next one. `system` follows the device, also while the page is
 * open.
 */
export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    keep('localStorage', name, theme);
    const follow = (): void => {
      apply(theme);
    };
    follow();
    systemDark.addEventListener('change', follow);
    return () => {
      systemDark.removeEventListener('change', follow);
    };
  }, [theme]);
  return [theme, () => setTheme(order[(order.indexOf(theme) + 1) % order.length] ?? 'system')];
}
