/** Hosts and their subdomains that a provider keeps files on. A message may name any other address. */
export interface MediaSources {
  /** The token of the binding goes along. */
  readonly withToken: readonly string[];
  /** Their addresses are signed: no token goes there. */
  readonly open: readonly string[];
}

/**
 * How a file may be fetched from there; undefined: not at all. To be asked of each address and each redirect before a
 * token goes with it. `operatorOrigins` are those of the APIs' base addresses, where an operator has set other ones:
 * never an address from a tenant or a message.
 */
export function mediaAccess(
  { withToken, open }: MediaSources,
  address: string,
  operatorOrigins: readonly string[] = [],
): 'with_token' | 'open' | undefined {
  const url = URL.parse(address);
  if (url === null) return undefined;
  if (operatorOrigins.includes(url.origin)) return 'with_token';
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return undefined;
  const isIn = (hosts: readonly string[]): boolean => hosts.some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`));
  if (isIn(withToken)) return 'with_token';
  return isIn(open) ? 'open' : undefined;
}
