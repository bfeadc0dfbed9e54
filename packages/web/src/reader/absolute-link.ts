const LINK_MAX_CHARACTERS = 2000;

/** Where a link leads, ready for Markdown; undefined for what is no place on the web, such as `javascript:`. */
export function absoluteLink(href: string | null | undefined, base: string): string | undefined {
  if (href === undefined || href === null || href.trim() === '' || href.startsWith('#')) return undefined;
  const url = URL.parse(href, base);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.href.length > LINK_MAX_CHARACTERS) return undefined;
  return url.href.replaceAll('(', '%28').replaceAll(')', '%29');
}
