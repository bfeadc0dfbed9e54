import {
  FakeMeta,
  FakeSlack,
  FakeTelegram,
  FakeTwilio,
  startScriptedSystem,
  type ScriptedModel,
  type ScriptedSystem,
  type System,
  type SystemOptions,
} from '@concierge/testing';
import { Client } from '../../contract/client.ts';
import { answerNumbers } from './numbered.ts';

const whatsapp = { phoneNumberId: '106540352242922', accessToken: 'EAAfake', verifyToken: 'verify-me', appSecret: 'meta-app-secret' };
const messenger = { pageId: '178414', accessToken: 'EAAfake', verifyToken: 'verify-me', appSecret: 'meta-app-secret' };
const telegram = { botToken: '7000001:telegram-token', botUsername: 'corner_shop_bot', secretToken: 'telegram-secret' };
const slack = { botToken: 'xoxb-fake', signingSecret: 'slack-signing-secret', teamId: 'T0FAKE', botUserId: 'U0BOT' };

const twilio = { accountSid: `AC${'1'.repeat(32)}`, authToken: 'twilio-token', from: '+15005550006' };

/** What each app is connected with: PUT /api/channels/{app}. */
export const appSettings = { whatsapp, messenger, telegram, slack, twilio } as const;
type App = keyof typeof appSettings;

/** The whole system, and a fake of every channel provider. */
export class TestChannels implements AsyncDisposable {
  readonly system: System;
  readonly model: ScriptedModel;
  readonly meta: FakeMeta;
  readonly telegram: FakeTelegram;
  readonly slack: FakeSlack;
  readonly twilio: FakeTwilio;
  readonly #stack: AsyncDisposableStack;

  private constructor(parts: ScriptedSystem & Pick<TestChannels, 'meta' | 'telegram' | 'slack' | 'twilio'>, stack: AsyncDisposableStack) {
    this.system = parts.system;
    this.model = parts.model;
    this.meta = parts.meta;
    this.telegram = parts.telegram;
    this.slack = parts.slack;
    this.twilio = parts.twilio;
    this.#stack = stack;
  }

  static async start(options: Partial<SystemOptions> = {}): Promise<TestChannels> {
    await using stack = new AsyncDisposableStack();
    const { accessToken, appSecret, phoneNumberId } = whatsapp;
    const meta = stack.use(await new FakeMeta({ accessToken, appSecret, phoneNumberId, pageId: messenger.pageId }).start());
    const bot = stack.use(await new FakeTelegram({ botToken: telegram.botToken }).start());
    const workspace = stack.use(await new FakeSlack(slack).start());
    const account = stack.use(await new FakeTwilio({ ...twilio, senders: [twilio.from] }).start());
    const env = { META_GRAPH_URL: meta.url, TELEGRAM_API_URL: bot.url, SLACK_API_URL: workspace.url, TWILIO_API_URL: account.url };
    const script = { fallback: answerNumbers };
    const scripted = await startScriptedSystem(stack, { script, ...options, env: { ...env, ...options.env } });
    return new TestChannels({ ...scripted, meta, telegram: bot, slack: workspace, twilio: account }, stack.move());
  }

  /** A tenant that is connected to this app, and the owner's client. */
  async tenantOn(tenantId: string, app: App): Promise<Client> {
    const { admin } = await this.system.createTenant(tenantId);
    const owner = new Client(this.system.url, admin);
    const answer = await owner.request(`/api/channels/${app}`, { method: 'PUT', body: appSettings[app] });
    if (answer.status !== 201) throw new Error(`${app} could not be connected: ${answer.text}`);
    return owner;
  }

  webhookUrl(app: App, tenantId: string, gateway = 0): string {
    return `${this.system.gatewayUrls[gateway] ?? ''}/webhook/${app}/${tenantId}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** A text message as WhatsApp brings it. */
export function whatsAppText({ from, id, body }: { readonly from: string; readonly id: string; readonly body: string }): object {
  const messages = [{ from, id, timestamp: String(Math.floor(Date.now() / 1000)), type: 'text', text: { body } }];
  const metadata = { display_phone_number: '15550783881', phone_number_id: whatsapp.phoneNumberId };
  const value = { messaging_product: 'whatsapp', metadata, contacts: [{ profile: { name: 'Ann' }, wa_id: from }], messages };
  return { object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] };
}

interface MessengerText {
  readonly from: string;
  readonly id: string;
  readonly text: string;
  /** It is taken back. */
  readonly deleted?: boolean;
}

/** A text message as Messenger brings it. */
export function messengerText({ from, id, text, deleted = false }: MessengerText): object {
  const said = deleted ? { mid: id, is_deleted: true } : { mid: id, text };
  const message = { sender: { id: from }, recipient: { id: messenger.pageId }, timestamp: Date.now(), message: said };
  return { object: 'page', entry: [{ id: messenger.pageId, time: Date.now(), messaging: [message] }] };
}

/** A text message in a private chat, as Telegram brings it. */
export function telegramText(said: { readonly from: number; readonly id: number; readonly text: string }): object {
  return telegramUpdate(said);
}

/** Any message in a private chat, by what it has beside its sender. */
export function telegramUpdate({
  from,
  id,
  ...content
}: {
  readonly from: number;
  readonly id: number;
  readonly [field: string]: unknown;
}): object {
  const person = { id: from, is_bot: false, first_name: 'Ann' };
  const chat = { id: from, type: 'private', first_name: 'Ann' };
  return { update_id: id, message: { message_id: id, from: person, chat, date: Math.floor(Date.now() / 1000), ...content } };
}

/** A message in a group that names the bot, as Telegram brings it. */
export function telegramMention({
  chat,
  id,
  text,
  ...more
}: {
  readonly chat: object;
  readonly id: number;
  readonly text: string;
}): object {
  const name = `@${telegram.botUsername}`;
  const entities = [{ type: 'mention', offset: 0, length: name.length }];
  const from = { id: 55, is_bot: false, first_name: 'Ann' };
  const message = { message_id: id, from, chat, date: Math.floor(Date.now() / 1000), text: `${name} ${text}`, entities, ...more };
  return { update_id: id, message };
}
