import type { ChannelSettings } from '@concierge/contract';
import type { Delivery, InboundItem } from '../channel-adapter.ts';
import { ignored } from '../inbound/items.ts';
import { readJson } from '../inbound/json.ts';
import { readEvent } from './event.ts';
import { readForm } from './form.ts';
import { isOurs } from './ours.ts';
import { Envelope } from './wire.ts';

/** One event as JSON, or a pressed button or slash command as a form. */
export function parseSlack(body: Uint8Array, settings: ChannelSettings['channel_d']): Delivery {
  const json = readJson(body);
  if (json === undefined) return readForm(body, settings);
  const envelope = Envelope.safeParse(json).data;
  if (envelope?.type === 'url_verification' && envelope.challenge !== undefined)
    return { kind: 'challenge', challenge: envelope.challenge };
  return { kind: 'items', items: [readEnvelope(envelope, settings)] };
}

function readEnvelope(envelope: Envelope | undefined, settings: ChannelSettings['channel_d']): InboundItem {
  if (envelope?.type !== 'event_callback') return ignored('other_event', envelope?.type ?? null);
  // The signature is the app's, for all workspaces that it is installed in.
  if (!isOurs(envelope, settings)) return ignored('foreign', envelope.event_id ?? null);
  return readEvent(envelope, settings);
}
