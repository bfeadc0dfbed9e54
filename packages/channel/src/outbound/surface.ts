import type { AppChannel } from '@concierge/contract';

/** What a message is written for. Instagram is reached through the page of `channel_b` and has limits of its own. */
export const surfaces = ['whatsapp', 'messenger', 'instagram', 'telegram', 'slack'] as const;
export type Surface = (typeof surfaces)[number];

/** The surface of a conversation; only `channel_b` has two. */
export function surfaceOf(channel: AppChannel, { instagram = false }: { readonly instagram?: boolean } = {}): Surface {
  switch (channel) {
    case 'channel_a':
      return 'whatsapp';
    case 'channel_b':
      return instagram ? 'instagram' : 'messenger';
    case 'channel_c':
      return 'telegram';
    case 'channel_d':
      return 'slack';
  }
}
