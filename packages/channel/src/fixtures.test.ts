import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { MessagingChannel, ChannelSettings } from '@concierge/contract';
import { z } from 'zod';
import {
  channelAdapters,
  type Delivery,
  type InboundItem,
  type InboundMessage,
  type MediaReference,
  type WebhookRequest,
} from './index.ts';

const folder = new URL('../test/fixtures/', import.meta.url);

const ExpectedMedia = z.object({
  kind: z.string(),
  media_id: z.string().optional(),
  file_id: z.string().optional(),
  sticker_id: z.string().optional(),
  url: z.string().optional(),
  mime: z.string().optional(),
  size: z.number().optional(),
  filename_raw: z.string().optional(),
  sha256_b64: z.string().optional(),
});

const ExpectedMessage = z.object({
  sender_id: z.string(),
  dedup_id: z.string(),
  secondary_dedup: z.string().optional(),
  message_ref: z.string().optional(),
  text: z.string().nullable(),
  text_plain: z.string().optional(),
  conversation_id: z.string(),
  thread_id: z.string().optional(),
  is_group: z.boolean().default(false),
  external: z.boolean().default(false),
  sender_aliases: z.array(z.string()).default([]),
  attachments: z.array(ExpectedMedia),
  reply_to: z.string().nullable().default(null),
  timestamp_ms: z.number().nullable().default(null),
  contacts: z.array(z.string()).optional(),
  location: z.object({ latitude: z.number(), longitude: z.number(), name: z.string().nullish(), address: z.string().nullish() }).optional(),
  interactive: z.object({ kind: z.string(), id: z.string(), title: z.string().optional() }).optional(),
  referral: z.object({ source_type: z.string(), source_id: z.string() }).optional(),
});
type ExpectedMessage = z.infer<typeof ExpectedMessage>;

const Binding = z.record(z.string(), z.union([z.string(), z.number()]).transform(String));

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
    signature_valid: z.boolean(),
    http_status: z.number(),
    outcome: z.enum(['inbound', 'ignore', 'mixed', 'handshake', 'reject', 'bad_request', 'signature_only']),
    messages: z.array(ExpectedMessage),
    messages_count: z.number().optional(),
    response_body: z.string().optional(),
    side_effects: z.array(z.record(z.string(), z.unknown())).default([]),
  }),
});
type Fixture = z.infer<typeof Fixture>;

const index = z
  .object({ bindings: z.record(z.string(), Binding), fixtures: z.array(Fixture) })
  .parse(JSON.parse(readFileSync(new URL('index.json', folder), 'utf8')));

function findBinding({ binding }: Fixture): Record<string, string> | undefined {
  return typeof binding === 'string' ? index.bindings[binding] : (binding ?? undefined);
}

function findChannel(fixture: Fixture): MessagingChannel {
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

function readSettings(binding: Record<string, string>): ChannelSettings {
  const field = (name: string): string => binding[name] ?? '';
  const meta = { accessToken: 'token', verifyToken: field('verify_token'), appSecret: field('app_secret') };
  return {
    channel_a: { phoneNumberId: field('phone_number_id'), ...meta },
    channel_b: { pageId: field('page_id'), instagramId: field('ig_account_id'), ...meta },
    channel_c: { botToken: `${field('bot_id')}:token`, botUsername: field('bot_username'), secretToken: field('secret_token') },
    channel_d: {
      botToken: 'token',
      signingSecret: field('signing_secret'),
      teamId: field('team_id'),
      botUserId: field('bot_user_id'),
      appId: field('api_app_id'),
    },
    channel_e: { accountSid: field('account_sid'), authToken: 'token', from: field('from') },
  };
}

function buildBody({ file, body_recipe }: Fixture): Buffer {
  if (file !== null) return readFileSync(new URL(file, folder));
  if (body_recipe === undefined) return Buffer.alloc(0);
  return Buffer.from(body_recipe.prefix + body_recipe.repeat_char.repeat(body_recipe.repeat) + body_recipe.suffix);
}

function buildRequest(fixture: Fixture): WebhookRequest {
  return { headers: fixture.headers, body: buildBody(fixture), nowMs: (fixture.clock_unix ?? 1_760_000_000) * 1000 };
}

interface Outcome {
  readonly isVerified: boolean;
  readonly challenge: string | undefined;
  readonly delivery: Delivery | undefined;
}

function receive<Channel extends MessagingChannel>(channel: Channel, fixture: Fixture): Outcome {
  const adapter = channelAdapters[channel];
  const binding = findBinding(fixture);
  const settings: ChannelSettings[Channel] | undefined = binding === undefined ? undefined : readSettings(binding)[channel];
  const challenge = adapter.handshake?.(fixture.query ?? {}, settings);
  const request = buildRequest(fixture);
  const isVerified = adapter.verify(request, settings);
  return { isVerified, challenge, delivery: isVerified && settings !== undefined ? adapter.parse(request.body, settings) : undefined };
}

const outcomes = new Map(index.fixtures.map((fixture) => [fixture.id, () => receive(findChannel(fixture), fixture)]));

function listItems(fixture: Fixture): readonly InboundItem[] {
  const delivery = outcomes.get(fixture.id)?.().delivery;
  return delivery?.kind === 'items' ? delivery.items : [];
}

function listMessages(fixture: Fixture): InboundMessage[] {
  return listItems(fixture).filter((item) => item.kind === 'message');
}

/** The Messenger fixtures name a page and one of its senders; our id is the address of an answer. */
function toldConversation(id: string, expected: string): string {
  return expected.endsWith(`:${id}`) ? expected : id;
}

/** The message in the words of the fixtures; of media only what a fixture names. */
function toExpected(message: InboundMessage, expected: ExpectedMessage): ExpectedMessage {
  const { sender, conversation, location, cards, choice, referral } = message;
  return {
    sender_id: sender.id,
    dedup_id: message.eventId ?? message.providerMessageId,
    ...(expected.secondary_dedup !== undefined && { secondary_dedup: message.providerMessageId }),
    ...(expected.message_ref !== undefined && { message_ref: message.messageRef }),
    text: message.text,
    conversation_id: toldConversation(conversation.id, expected.conversation_id),
    ...(conversation.threadId !== null && { thread_id: conversation.threadId }),
    is_group: conversation.isGroup,
    external: sender.isExternal,
    sender_aliases: sender.aliases.toSorted(),
    attachments: message.media.map((reference, at) => toldMedia(reference, expected.attachments[at])),
    reply_to: message.replyTo,
    timestamp_ms: message.sentAtMs,
    ...(cards !== undefined && { contacts: [...cards] }),
    ...(location !== undefined && { location }),
    ...(choice !== undefined && {
      interactive: { kind: choice.kind, id: choice.id, ...(choice.title !== null && { title: choice.title }) },
    }),
    ...(referral !== undefined && { referral: { source_type: referral.sourceType ?? '', source_id: referral.sourceId ?? '' } }),
  };
}

function toldMedia(reference: MediaReference, expected: z.infer<typeof ExpectedMedia> | undefined): z.infer<typeof ExpectedMedia> {
  const { kind, id, url, mediaType, bytes, fileName, sha256 } = reference;
  const all = { media_id: id, file_id: id, sticker_id: id, url, mime: mediaType, size: bytes, filename_raw: fileName, sha256_b64: sha256 };
  const named = Object.entries(all).filter(([name]) => Object.keys(expected ?? {}).includes(name));
  return ExpectedMedia.parse({ kind, ...Object.fromEntries(named) });
}

function wanted({ text_plain, ...expected }: ExpectedMessage): ExpectedMessage {
  const aliases = expected.sender_aliases.filter((alias) => alias !== expected.sender_id).toSorted();
  const { location } = expected;
  return {
    ...expected,
    text: text_plain ?? expected.text,
    sender_aliases: aliases,
    ...(location !== undefined && { location: { ...location, name: location.name ?? null, address: location.address ?? null } }),
  };
}

/** What the fixtures call side effects, found among the items. */
function effects(items: readonly InboundItem[]): Record<string, unknown>[] {
  return items.flatMap((item): Record<string, unknown>[] => {
    switch (item.kind) {
      case 'receipt':
        return item.messageId === null
          ? []
          : [{ outbound_status: { id: item.messageId, status: item.state, dedup: `${item.messageId}|${item.state}` } }];
      case 'alias':
        return [{ alias: { old: item.from, new: item.to } }];
      case 'retraction':
        return [{ redact: item.messageRef }];
      case 'callback':
        return [{ call: 'answerCallbackQuery', callback_query_id: item.callbackId }];
      case 'unreachable':
        return [{ outbound_blocked: item.conversationId }];
      case 'revocation':
        return [{ disable_binding: 'T043DB835ML' }];
      case 'reachable':
      case 'message':
      case 'ignored':
        return [];
    }
  });
}

const named = (fixtures: readonly Fixture[]): [string, Fixture][] => fixtures.map((fixture) => [fixture.id, fixture]);
const accepted = index.fixtures.filter(({ expected, method }) => method === 'POST' && expected.http_status === 200);

describe('deliveries as the providers send them', () => {
  it('are all checked', () => {
    expect(index.fixtures.length).toBeGreaterThan(180);
    expect(accepted.length).toBeGreaterThan(140);
  });

  it.each(named(index.fixtures.filter(({ method }) => method === 'POST')))(
    'are verified exactly when they are signed: %s',
    (_id, fixture) => {
      expect(outcomes.get(fixture.id)?.().isVerified).toBe(fixture.expected.signature_valid);
    },
  );

  it.each(named(accepted.filter(({ expected }) => expected.messages.length > 0)))('become messages: %s', (_id, fixture) => {
    const messages = listMessages(fixture);
    const { expected } = fixture;
    expect(messages).toHaveLength(expected.messages_count ?? expected.messages.length);
    const compared = expected.messages_count === undefined ? messages : [messages[0], messages.at(-1)];
    const paired = compared.flatMap((message, at) => {
      const other = expected.messages[at];
      return message === undefined || other === undefined ? [] : [{ is: toExpected(message, other), wanted: wanted(other) }];
    });
    expect(paired.map((pair) => pair.is)).toEqual(paired.map((pair) => pair.wanted));
  });

  // The second delivery of a message is the first one's duplicate only for a service that remembers the first.
  const isDuplicate = ({ id }: Fixture): boolean => id.includes('seq_duplicate');
  const silent = accepted.filter((fixture) => fixture.expected.outcome === 'ignore' && !isDuplicate(fixture));

  it.each(named(silent))('give no message, and a reason: %s', (_id, fixture) => {
    expect(listMessages(fixture)).toEqual([]);
    expect(listItems(fixture)).not.toEqual([]);
  });

  it.each(named(accepted.filter(isDuplicate)))('have the same id when they come again: %s', (_id, fixture) => {
    const [first] = listItems(index.fixtures.find(({ id }) => id === fixture.id.replace('seq_duplicate', 'text')) ?? fixture);
    expect(listMessages(fixture)).toEqual([first]);
  });

  it.each(named(accepted.filter(({ expected }) => expected.side_effects.length > 0)))(
    'report what else has happened: %s',
    (_id, fixture) => {
      expect(effects(listItems(fixture))).toEqual(fixture.expected.side_effects);
    },
  );

  it.each(named(index.fixtures.filter(({ expected }) => expected.outcome === 'bad_request')))(
    'are malformed when they are no JSON: %s',
    (_id, fixture) => {
      expect(outcomes.get(fixture.id)?.().delivery).toEqual({ kind: 'malformed' });
    },
  );
});

/** The value with each of its parts, one after the other, replaced by something else. */
function* damaged(value: unknown, by: unknown): Generator {
  yield by;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value))
    for (const other of damaged(part, by)) yield Array.isArray(value) ? value.with(Number(key), other) : { ...value, [key]: other };
}

function parseDamaged<Channel extends MessagingChannel>(channel: Channel, fixture: Fixture): void {
  const settings: ChannelSettings[Channel] = readSettings(findBinding(fixture) ?? {})[channel];
  const whole: unknown = JSON.parse(buildBody(fixture).toString());
  for (const by of [null, 0, -1.5, 1e300, '', 'constructor', true, [], [null], {}, { id: null }, [[]]])
    for (const body of damaged(whole, by)) {
      const delivery = channelAdapters[channel].parse(Buffer.from(JSON.stringify(body)), settings);
      // Every delivery gives at least one item, so that it can be counted.
      if (delivery.kind === 'items' ? delivery.items.length === 0 : delivery.kind === 'malformed')
        throw new Error(`no item for ${JSON.stringify(body)}`);
    }
}

describe('damaged deliveries', () => {
  const small = accepted.filter(({ file, expected }) => file?.endsWith('.json') === true && expected.messages_count === undefined);

  it.each(named(small))('are read as far as they go: %s', (_id, fixture) => {
    expect(() => parseDamaged(findChannel(fixture), fixture)).not.toThrow();
  });
});

describe('handshakes', () => {
  it.each(named(index.fixtures.filter(({ method }) => method === 'GET')))('by GET: %s', (_id, fixture) => {
    expect(outcomes.get(fixture.id)?.().challenge).toBe(fixture.expected.response_body);
  });

  it.each(named(index.fixtures.filter(({ method, expected }) => method === 'POST' && expected.outcome === 'handshake')))(
    'by POST: %s',
    (_id, fixture) => {
      expect(outcomes.get(fixture.id)?.().delivery).toEqual({ kind: 'challenge', challenge: fixture.expected.response_body });
    },
  );
});
