import { useMemo } from 'react';
import { useLocation } from 'wouter';
import { formatRoute, parseRoute, type Route } from '../../src/chat/route.ts';
import { navigate } from './navigation.ts';

/** The conversation that the address names. */
export function useRoute(): Route {
  const [path] = useLocation();
  return useMemo(() => parseRoute(path), [path]);
}

/** Whether the browser is there now, whatever the page that asks was drawn for. */
export function isShown(route: Route): boolean {
  return location.pathname === formatRoute(route);
}

export function goTo(route: Route): void {
  navigate(formatRoute(route));
}

/** The same page under its lasting address: the one before is not worth going back to. */
export function replaceRoute(route: Route): void {
  navigate(formatRoute(route), { replace: true });
}
