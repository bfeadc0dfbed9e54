import { appNameOf, channelDefinitions, type AppChannel } from '@concierge/contract';
import { ToolError } from '../tool.ts';

/** Free text would be refused by the app: said before it is kept, with what may be done instead. */
export function windowClosed(channel: AppChannel, sinceMs: number | undefined): ToolError {
  const { hasTemplates, label } = channelDefinitions[channel];
  const since =
    sinceMs === undefined
      ? 'This contact has not written there, so the window has never been open.'
      : `The window has been closed since ${new Date(sinceMs).toISOString()}.`;
  const instead = hasTemplates
    ? `Give template, with the name and language of one that ${label} has approved for the owner, or wait until they write.`
    : 'Nothing can be sent until they write; tell the owner.';
  return new ToolError(
    `NOT SENT. ${appNameOf(channel)} takes free text only within 24 hours after the contact’s last message. ${since} ${instead}`,
  );
}
