/** Slack's markup as a reader sees it. Entities are undone once, `&` last: a typed `&lt;` stays that. */
export function plainText(text: string, ownUserId: string): string {
  // bounded-expression: the id is taken as it is, and what follows it ends at the next angle bracket
  const own = new RegExp(String.raw`<@${RegExp.escape(ownUserId)}(?:\|[^<>]*)?>`, 'gu');
  return text
    .replace(own, '')
    .replace(/<([^<>]+)>/gu, (_all, link: string) => readable(link))
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .trim();
}

export function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`);
}

/** `@U1`, `#general`, `@here`, `label (address)`. */
function readable(link: string): string {
  const bar = link.indexOf('|');
  const target = bar === -1 ? link : link.slice(0, bar);
  const label = bar === -1 ? undefined : link.slice(bar + 1);
  const name = target.slice(1);
  switch (target.charAt(0)) {
    case '@':
    case '#':
      return `${target.charAt(0)}${label ?? name}`;
    case '!':
      return label ?? `@${name.replace(/^subteam\^/u, '')}`;
    default:
      return label === undefined || label === target ? target : `${label} (${target})`;
  }
}
