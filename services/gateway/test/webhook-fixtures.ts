import { readFileSync } from 'node:fs';
import type { MessagingChannel, ChannelSettings } from '@concierge/contract';
import { z } from 'zod';

const folder = new URL('../../../packages/channel/test/fixtures/', import.meta.url);

const Binding = z.record(z.string(), z.union([z.string(), z.number()]).transform(String));

const ExpectedMessage = z.object({
  sender_id: z.string(),
  message_ref: z.string().optional(),
  text: z.string().nullable(),
  text_plain: z.string().optional(),
  conversation_id: z.string(),
  thread_id: z.string().optional(),
  is_group: z.boolean().default(false),
  attachments: z.array(z.unknown()),
  reply_to: z.string().nullable().default(null),
});
export type ExpectedMessage = z.infer<typeof ExpectedMessage>;

const Fixture = z.object({
  id: z.string(),
  method: z.enum(['GET', 'POST']),
  file: z.string().nullable(),
  query: z.record(z.string(), z.unknown()).optional(),
  headers: z.record(z.string(), z.string()),
  binding: z.union([z.string(), Binding]).nullable(),
  clock_unix: z.number().optional(),
  body_recipe: z.object({ prefix: z.string(), repeat_char: z.string(), repeat: z.number(), suffix: z.string() }).optional(),
  expected: z.object({
    http_status: z.number(),
    outcome: z.string(),
    messages: z.array(ExpectedMessage),
    messages_count: z.number().optional(),
    response_body: z.string().optional(),
  }),
});
export type Fixture = z.infer<typeof Fixture>;

const Index = z.object({
  bindings: z.record(z.string(), Binding),
  fixtures: z.array(Fixture),
  sequences: z.array(
    z.object({
      name: z.string(),
      steps: z.array(z.string()),
      expected_total_inbound: z.number(),
      expected_side_effects: z.array(z.object({ redact: z.string() })).default([]),
    }),
  ),
});

/** Deliveries as the providers send them, byte for byte, and the expected outcome of each. */
export const { bindings, fixtures, sequences } = Index.parse(JSON.parse(readFileSync(new URL('index.json', folder), 'utf8')));

export function findFixture(id: string): Fixture {
  const found = fixtures.find((fixture) => fixture.id === id);
  if (found === undefined) throw new Error(`there is no fixture ${id}`);
  return found;
}

export function buildBody({ file, body_recipe: recipe }: Fixture): Uint8Array<ArrayBuffer> {
  if (file !== null) return new Uint8Array(readFileSync(new URL(file, folder)));
  return new TextEncoder().encode(recipe === undefined ? '' : recipe.prefix + recipe.repeat_char.repeat(recipe.repeat) + recipe.suffix);
}

function findBinding({ binding }: Fixture): Readonly<Record<string, string>> | undefined {
  return typeof binding === 'string' ? bindings[binding] : (binding ?? undefined);
}

export function findChannel(fixture: Fixture): MessagingChannel {
  switch (findBinding(fixture)?.['provider'] ?? '') {
    case 'messenger':
    case 'instagram':
      return 'channel_b';
    case 'telegram':
      return 'channel_c';
    case 'slack':
      return 'channel_d';
    default:
      return 'channel_a';
  }
}

/** What the fixture's tenant connects; undefined for those that cannot be connected. */
export function findSettings(fixture: Fixture): ChannelSettings[MessagingChannel] | undefined {
  const binding = findBinding(fixture);
  if (binding === undefined || binding['app_secret'] === '' || binding['signing_secret'] === '') return undefined;
  const field = (name: string): string => binding[name] ?? 'none';
  const optional = (name: string, value: string | undefined): object => (value === undefined ? {} : { [name]: value });
  const meta = { accessToken: 'token', verifyToken: field('verify_token'), appSecret: field('app_secret') };
  const settings = {
    channel_a: { phoneNumberId: field('phone_number_id'), ...meta },
    channel_b: { pageId: field('page_id'), ...optional('instagramId', binding['ig_account_id']), ...meta },
    channel_c: {
      botToken: `${field('bot_id')}:token`,
      ...optional('botUsername', binding['bot_username']),
      secretToken: field('secret_token'),
    },
    channel_d: {
      botToken: 'token',
      signingSecret: field('signing_secret'),
      teamId: field('team_id'),
      botUserId: field('bot_user_id'),
      ...optional('appId', binding['api_app_id']),
    },
    channel_e: { accountSid: field('account_sid'), authToken: 'token', from: field('from') },
  };
  return settings[findChannel(fixture)];
}
