import { agentNamePattern } from '@concierge/contract';

export type Route = { readonly page: 'new'; readonly agent: string } | { readonly page: 'conversation'; readonly contactId: string };

/** The conversation that an address names; a new one with the admin agent when it names none. */
export function parseRoute(path: string): Route {
  const [name = '', agent = ''] = path.replace(/^\/chat\/?/u, '').split('/');
  if (/^[0-9a-f]{32}$/u.test(name)) return { page: 'conversation', contactId: name };
  if (name === 'new' && agentNamePattern.test(agent)) return { page: 'new', agent };
  return { page: 'new', agent: 'admin' };
}

/** What earlier versions put behind the `#` of an address; undefined for anything else. */
export function parseOldFragment(fragment: string): Route | undefined {
  const path = /^#\/(?:c\/([0-9a-f]{32})|(new\/[^/]+))$/u.exec(fragment);
  return path === null ? undefined : parseRoute(`/chat/${path[1] ?? path[2] ?? ''}`);
}

export function formatRoute(route: Route): string {
  return route.page === 'new' ? `/chat/new/${route.agent}` : `/chat/${route.contactId}`;
}
