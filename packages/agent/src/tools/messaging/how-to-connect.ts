import type { AppName } from '@concierge/contract';

/** In words for a model that is asked for it. */
export function howToConnect(app: AppName): string {
  return `The owner connects it with an admin key (PUT /api/channels/${app}), or the operator does (concierge channel connect <tenant> ${app}). Credentials must never be written into a conversation.`;
}
