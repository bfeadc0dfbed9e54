import { lookup, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';

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
