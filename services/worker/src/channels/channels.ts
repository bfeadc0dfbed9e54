import type { ProviderUrls } from '@concierge/channel';
import type { Log } from '@concierge/runtime';
import { ChannelFiles } from './channel-files.ts';
import { ChannelSenders } from './channel-senders.ts';
import { ChannelTyping } from './channel-typing.ts';

/** What a turn that came from a channel needs of it while it runs. */
export interface WorkerChannels {
  readonly fetchFiles: ChannelFiles['fetchFiles'];
  readonly showTyping: ChannelTyping['show'];
}

export function openChannels({ urls, log }: { readonly urls: ProviderUrls; readonly log: Log }): WorkerChannels {
  const senders = new ChannelSenders({ urls, log });
  const files = new ChannelFiles({ senders, log });
  const typing = new ChannelTyping({ senders, log });
  return {
    fetchFiles: async (run, turns) => files.fetchFiles(run, turns),
    showTyping: (run, turns) => typing.show(run, turns),
  };
}
