import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * What of IPv6 is given out to the world at all. Outside of it ipaddr.js calls much "unicast": `::127.0.0.1`, `4000::`,
 * …
 */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Is this the address of one host of the public internet? Never true for what leads to this host, its network or a
 * translator into it: private, shared, local, mapped, translated, tunnelled, documentation, multicast, reserved.
 * `address` is an address in its usual form, as a resolver or a WHATWG URL gives it; anything else is not public.
 */
export function isPublicAddress(address: string): boolean {
  // Four decimal parts only: ipaddr.js also reads `0x7f.1` and `017700000001`, which no resolver gives.
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) return ipaddr.IPv4.parse(address).range() === 'unicast';
  // A zone names an interface of this host.
  if (!ipaddr.IPv6.isValid(address) || address.includes('%')) return false;
  const parsed = ipaddr.IPv6.parse(address);
  return parsed.range() === 'unicast' && parsed.match(globalUnicast);
}

/** All addresses of a name; none when it has none. */
export type ResolveHost = (hostname: string, signal: AbortSignal) => Promise<readonly string[]>;

const TIMEOUT_MS = 3000;
const TRIES = 2;

/**
 * Asks DNS itself. The system's resolver would block one of the few threads that files are read with, for as long as
 * the name's owner likes; and it knows names (hosts files, search domains) that no stranger's URL needs.
 */
export function dnsResolver(servers?: readonly string[]): ResolveHost {
  return async (hostname, signal) => {
    if (isIP(hostname) !== 0) return [hostname];
    signal.throwIfAborted();
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = (): void => {
      resolver.cancel();
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      signal.throwIfAborted();
      return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

/** As the system resolves: for hosts that the operator named. */
export const systemResolver: ResolveHost = async (hostname) => (await lookup(hostname, { all: true })).map(({ address }) => address);
