import type { ProviderUrls } from '@concierge/channel';
import type { Log } from '@concierge/runtime';
import { ChatAppFiles } from './chat-app-files.ts';
import { ChatAppSenders } from './chat-app-senders.ts';
import { ChatAppTyping } from './chat-app-typing.ts';

/** What a turn that came from a chat app needs of it while it runs. */
export interface ChatApps {
  readonly fetchFiles: ChatAppFiles['fetchFiles'];
  readonly showTyping: ChatAppTyping['show'];
}

export function openChatApps({ urls, log }: { readonly urls: ProviderUrls; readonly log: Log }): ChatApps {
  const senders = new ChatAppSenders({ urls, log });
  const files = new ChatAppFiles({ senders, log });
  const typing = new ChatAppTyping({ senders, log });
  return {
    fetchFiles: async (run, turns) => files.fetchFiles(run, turns),
    showTyping: (run, turns) => typing.show(run, turns),
  };
}
