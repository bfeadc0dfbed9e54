import { agentNamePattern } from '@concierge/contract';

export type Route = { readonly page: 'new'; readonly agent: string } | { readonly page: 'conversation'; readonly contactId: string };

/** The page that an address' fragment names; a new conversation with the admin agent when it names none. */
export function parseRoute(fragment: string): Route {
  const [page, name = ''] = fragment.replace(/^#?\/?/u, '').split('/');
  if (page === 'c' && /^[0-9a-f]{32}$/u.test(name)) return { page: 'conversation', contactId: name };
  if (page === 'new' && agentNamePattern.test(name)) return { page: 'new', agent: name };
  return { page: 'new', agent: 'admin' };
}

export function formatRoute(route: Route): string {
  return route.page === 'new' ? `#/new/${route.agent}` : `#/c/${route.contactId}`;
}
