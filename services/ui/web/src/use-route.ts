import { useMemo, useSyncExternalStore } from 'react';
import { formatRoute, parseRoute, type Route } from '../../src/chat/route.ts';

function subscribe(listener: () => void): () => void {
  addEventListener('hashchange', listener);
  return () => {
    removeEventListener('hashchange', listener);
  };
}

export function useRoute(): Route {
  const fragment = useSyncExternalStore(subscribe, () => location.hash);
  return useMemo(() => parseRoute(fragment), [fragment]);
}

export function goTo(route: Route): void {
  location.hash = formatRoute(route);
}

/** The same page under its lasting address: the one before is not worth going back to. */
export function replaceRoute(route: Route): void {
  history.replaceState(null, '', formatRoute(route));
  dispatchEvent(new HashChangeEvent('hashchange'));
}
