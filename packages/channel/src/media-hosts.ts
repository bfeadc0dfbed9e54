import type { AppChannel } from '@concierge/contract';

/** Hosts and their subdomains that files of an app lie on. Whoever writes a message may put any other address into it. */
const mediaHosts = {
  channel_a: ['lookaside.fbsbx.com'],
  channel_b: ['fbcdn.net', 'fbsbx.com', 'cdninstagram.com'],
  // Files are fetched from the API itself, at the operator's address of it.
  channel_c: [],
  channel_d: ['slack.com'],
} as const satisfies Record<AppChannel, readonly string[]>;

/** Apps whose files are fetched with the binding's token. The others' addresses are signed, and a token must not go there. */
const tokenChannels: readonly AppChannel[] = ['channel_a', 'channel_d'];

/**
 * May a file be fetched from there? To be asked of each address and each redirect before a token goes with it. `operatorOrigins` are those of the APIs'
 * base addresses, where an operator has set other ones: never anything that a tenant or a message says.
 */
export function isMediaUrl(channel: AppChannel, address: string, operatorOrigins: readonly string[] = []): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined) return false;
  if (operatorOrigins.includes(url.origin)) return true;
  if (url.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '') return false;
  return mediaHosts[channel].some((host) => url.hostname === host || url.hostname.endsWith(`.${host}`));
}

export function takesMediaToken(channel: AppChannel): boolean {
  return tokenChannels.includes(channel);
}
