import type { SlackSettings } from '@concierge/contract';
import type { Delivery, InboundItem } from '../channel-adapter.ts';
import { ignored, orNull, textOrNull } from '../inbound/items.ts';
import { readJson, storable } from '../inbound/json.ts';
import { readEvent } from './event.ts';
import { Envelope, Action, BlockActions, SlashCommand } from './wire.ts';

/** One event as JSON, or a pressed button or slash command as a form. */
export function parseSlack(body: Uint8Array, settings: SlackSettings): Delivery {
  const json = readJson(body);
  if (json === undefined) return readForm(body, settings);
  const envelope = Envelope.safeParse(json).data;
  if (envelope?.type === 'url_verification' && envelope.challenge !== undefined)
    return { kind: 'challenge', challenge: envelope.challenge };
  return { kind: 'items', items: [readEnvelope(envelope, settings)] };
}

function readEnvelope(envelope: Envelope | undefined, settings: SlackSettings): InboundItem {
  if (envelope?.type !== 'event_callback') return ignored('other_event', envelope?.type ?? null);
  // The signature is the app's, for all workspaces that it is installed in.
  if (!isOurs(envelope, settings)) return ignored('foreign', envelope.event_id ?? null);
  return readEvent(envelope, settings);
}

interface Addressee {
  readonly team_id?: string | undefined;
  readonly context_team_id?: string | undefined;
  readonly api_app_id?: string | undefined;
}

/**
 * Whether it is for this workspace, and for this app where the binding names one. The outermost ids decide: those
 * inside, of the event and its authorizations, may be another workspace's. An app of a whole organisation has its
 * workspace in `context_team_id`.
 */
export function isOurs({ team_id, context_team_id, api_app_id }: Addressee, settings: SlackSettings): boolean {
  const isOfOrganisation = team_id === undefined || team_id.startsWith('E');
  if ((isOfOrganisation ? context_team_id : team_id) !== settings.teamId) return false;
  return settings.appId === undefined || api_app_id === settings.appId;
}

/** Buttons and slash commands come as forms. Neither has an event id. */
function readForm(body: Uint8Array, settings: SlackSettings): Delivery {
  const form = new URLSearchParams(new TextDecoder().decode(body));
  if (form.get('ssl_check') === '1') return { kind: 'items', items: [ignored('other_event', 'ssl_check')] };
  const payload = form.get('payload');
  if (payload !== null) {
    const json = readJson(new TextEncoder().encode(payload));
    return json === undefined ? { kind: 'malformed' } : { kind: 'items', items: readActions(json, settings) };
  }
  if (!form.has('command')) return { kind: 'malformed' };
  return { kind: 'items', items: [readCommand(Object.fromEntries([...form].map(([name, value]) => [name, storable(value)])), settings)] };
}

function readActions(json: unknown, settings: SlackSettings): InboundItem[] {
  const pressed = BlockActions.safeParse(json).data;
  if (pressed?.type !== 'block_actions') return [ignored('other_event', pressed?.type ?? 'payload')];
  if (!isOurs({ team_id: pressed.team?.id, api_app_id: pressed.api_app_id }, settings)) return [ignored('foreign', 'block_actions')];
  if (pressed.actions.length === 0) return [ignored('empty', 'block_actions')];
  return pressed.actions.map((action) => readAction(action, pressed, settings));
}

function readAction(json: unknown, pressed: BlockActions, settings: SlackSettings): InboundItem {
  const action = Action.safeParse(json).data;
  const { channel, user, message } = pressed;
  if (action === undefined || channel === undefined) return ignored('unreadable', 'block_actions');
  const { action_id = '', action_ts } = action;
  const { title, value } = chosenIn(action);
  const text = title ?? value;
  if (text === null) return ignored('empty', 'block_actions');
  return {
    kind: 'message',
    providerMessageId: `action:${settings.teamId}:${action_ts}:${action_id}`,
    eventId: null,
    messageRef: `${channel.id}/${message?.ts ?? action_ts}`,
    sender: { id: user.id, aliases: [], displayName: orNull(user.name), isExternal: (user.team_id ?? settings.teamId) !== settings.teamId },
    conversation: { id: channel.id, threadId: orNull(message?.thread_ts), isGroup: !channel.id.startsWith('D') },
    text,
    media: [],
    choice: { kind: 'block_action', id: value ?? action_id, title },
    replyTo: null,
    sentAtMs: null,
  };
}

function chosenIn({ selected_option, text, value }: Action): { readonly title: string | null; readonly value: string | null } {
  return selected_option === undefined
    ? { title: textOrNull(text?.text), value: textOrNull(value) }
    : { title: textOrNull(selected_option.text?.text), value: textOrNull(selected_option.value) };
}

function readCommand(form: Readonly<Record<string, string>>, settings: SlackSettings): InboundItem {
  const command = SlashCommand.safeParse(form).data;
  if (command === undefined) return ignored('unreadable', 'command');
  if (!isOurs(command, settings)) return ignored('foreign', 'command');
  const words = textOrNull(command.text);
  if (words === null) return ignored('empty', 'command');
  const { user_id, user_name, channel_id, trigger_id } = command;
  return {
    kind: 'message',
    providerMessageId: `command:${settings.teamId}:${trigger_id}`,
    eventId: null,
    messageRef: `${channel_id}/${trigger_id}`,
    sender: { id: user_id, aliases: [], displayName: orNull(user_name), isExternal: false },
    conversation: { id: channel_id, threadId: null, isGroup: !channel_id.startsWith('D') },
    text: `${command.command} ${words}`.trim(),
    media: [],
    replyTo: null,
    sentAtMs: null,
  };
}
