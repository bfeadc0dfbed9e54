import { useCallback, useMemo } from 'react';
import { useSearch } from 'wouter';
import { navigate } from '../navigation.ts';

/** Which filters change, and to what; an empty one is left out of the address. */
export type FilterChange = Readonly<Record<string, string>>;

export interface Filters {
  /** Empty when it is not set. */
  read: (name: string) => string;
  change: (changed: FilterChange) => void;
}

/** What a list is narrowed by: it stands in the address, so that a link leads to the same list. */
export function useFilters(): Filters {
  const search = useSearch();
  const read = useCallback((name: string) => new URLSearchParams(search).get(name) ?? '', [search]);
  const change = useCallback((changed: FilterChange) => {
    // Not of the last drawing: two changes may follow one another faster.
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changed)) {
      if (value === '') next.delete(name);
      else next.set(name, value);
    }
    const query = next.toString();
    // In place: "back" leads to the page before, and not through what was typed.
    navigate(query === '' ? location.pathname : `${location.pathname}?${query}`, { replace: true });
  }, []);
  return useMemo(() => ({ read, change }), [read, change]);
}
