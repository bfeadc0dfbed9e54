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
