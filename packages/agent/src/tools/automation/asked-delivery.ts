import { channelDefinitions, channelSynonyms, HttpUrl, recipientOf, type AppName, type ScheduleDelivery } from '@concierge/contract';
import { ToolError } from '../tool.ts';

interface AskedDelivery {
  readonly deliver_channel?: AppName | 'webhook' | 'none' | undefined;
  readonly deliver_to?: string | undefined;
}

/** Undefined when nothing was said about it, null for nowhere. @throws ToolError for half of it */
export function deliveryOf({ deliver_channel: app, deliver_to: to }: AskedDelivery): ScheduleDelivery | null | undefined {
  if (app === undefined && to === undefined) return undefined;
  if (app === 'none') {
    if (to !== undefined) throw new ToolError('deliver_channel none sends nothing to anybody: leave deliver_to out.');
    return null;
  }
  if (app === undefined || to === undefined)
    throw new ToolError('deliver_channel and deliver_to go together: the app, and who gets it there; or webhook, and its URL.');
  if (app === 'webhook') {
    const url = HttpUrl.safeParse(to);
    if (!url.success)
      throw new ToolError(`"${to}" is no address of a webhook: give a URL that begins with https:// and has no password in it.`);
    return { webhook: url.data };
  }
  const channel = channelSynonyms[app];
  const recipient = recipientOf(channel, to);
  if (recipient === undefined) throw new ToolError(`"${to}" is nobody on ${app}: give ${channelDefinitions[channel].recipient.words}.`);
  return { channel, to: recipient };
}
