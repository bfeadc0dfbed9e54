import { z } from 'zod';
import { id, list, maybe } from '../inbound/json.ts';

/** What is read of Slack's events, buttons and slash commands. */

const text = maybe(z.string());
const present = z.unknown().optional();

export const Envelope = z.object({
  type: text,
  challenge: text,
  team_id: maybe(id),
  context_team_id: maybe(id),
  api_app_id: maybe(id),
  event_id: maybe(id),
  event: z.unknown().optional(),
});
export type Envelope = z.infer<typeof Envelope>;

export const Event = z.object({
  type: z.string(),
  subtype: text,
  user: maybe(id),
  bot_id: present,
  bot_profile: present,
  app_id: present,
  text,
  ts: maybe(z.string()),
  thread_ts: text,
  deleted_ts: text,
  parent_user_id: maybe(id),
  channel: maybe(id),
  channel_type: text,
  user_team: maybe(id),
  source_team: maybe(id),
  files: list,
  tokens: maybe(z.object({ bot: list })),
});
export type Event = z.infer<typeof Event>;

export const File = z.object({
  id,
  name: text,
  mimetype: text,
  mode: text,
  size: maybe(z.number()),
  is_external: maybe(z.boolean()),
  url_private: text,
  url_private_download: text,
});

const Label = z.object({ text });

export const BlockActions = z.object({
  type: z.string(),
  api_app_id: maybe(id),
  team: maybe(z.object({ id })),
  user: z.object({ id, name: text, team_id: maybe(id) }),
  channel: maybe(z.object({ id })),
  message: maybe(z.object({ ts: text, thread_ts: text })),
  actions: list,
});
export type BlockActions = z.infer<typeof BlockActions>;

export const Action = z.object({
  action_id: maybe(id),
  action_ts: z.string(),
  value: text,
  text: maybe(Label),
  selected_option: maybe(z.object({ value: text, text: maybe(Label) })),
});
export type Action = z.infer<typeof Action>;

export const SlashCommand = z.object({
  team_id: id,
  api_app_id: maybe(id),
  user_id: id,
  user_name: text,
  channel_id: id,
  command: z.string(),
  text: z.string().catch(''),
  trigger_id: id,
});
