import {
  AppError,
  channelDefinitions,
  limits,
  toAppName,
  webhookPaths,
  type MessagingChannel,
  type ChannelCheck,
  type ChannelCheckCode,
  type ChannelDefinition,
  type ChannelSettings,
  type ChannelSetup,
  type ChannelTest,
  type ChannelView,
  type ConnectedChannel,
  type ReplyWindowView,
} from '@concierge/contract';
import { answerDeadline } from '@concierge/runtime';
import type { ChannelWebhooks, ConversationHint, WebhookAddresses } from './channel-adapter.ts';
import { channelAdapters, readBinding, openSender, openWebhooks, readSelfId, type OpenBinding } from './channel-adapters.ts';
import type { CredentialCheck } from './outbound/channel-sender.ts';
import type { ProviderUrls } from './outbound/provider-environment.ts';
import type { z } from 'zod';
import { replyWindow } from './outbound/sending-rules.ts';

/** Where a tenant's bindings are kept. */
export interface BindingStore {
  list(): Promise<ChannelView[]>;
  find(channel: MessagingChannel): Promise<ChannelView | undefined>;
  /** Also for a disabled binding. @throws AppError internal_error when they cannot be opened */
  credentials<Channel extends MessagingChannel>(channel: Channel): Promise<ChannelSettings[Channel] | undefined>;
  connect(channel: MessagingChannel, settings: unknown): Promise<ChannelView>;
  learn(seen: ChannelView, identifiers: Readonly<Record<string, string>>): Promise<void>;
  /** @throws AppError not_found */
  disconnect(channel: MessagingChannel): Promise<void>;
}

export interface ConnectableTenant {
  readonly tenantId: string;
  readonly channels: BindingStore;
}

/** A tenant that makes up the tokens that its providers show when they call. */
interface TokenTenant extends ConnectableTenant {
  readonly secrets: { deriveToken(field: string): string };
}

export interface ConnectionsOptions {
  readonly urls: ProviderUrls;
  readonly publicUrl: string | undefined;
  /** How long a provider has for an answer. */
  readonly timeoutMs?: number;
}

/** Connects, tests and disconnects channels, by the same rules for every caller. */
export class ChannelConnections {
  readonly #urls: ProviderUrls;
  readonly #publicUrl: string | undefined;
  readonly #timeoutMs: number;

  constructor({ urls, publicUrl, timeoutMs = limits.channelCheckTimeoutMs }: ConnectionsOptions) {
    this.#urls = urls;
    this.#publicUrl = publicUrl;
    this.#timeoutMs = timeoutMs;
  }

  async list(tenant: ConnectableTenant): Promise<ConnectedChannel[]> {
    return (await tenant.channels.list()).map((view) => this.#show(tenant, view));
  }

  /** @throws AppError not_found */
  async find(tenant: ConnectableTenant, channel: MessagingChannel): Promise<ConnectedChannel> {
    const view = await tenant.channels.find(channel);
    if (view === undefined) throw new AppError('not_found', 'The channel is not connected.');
    return this.#show(tenant, view);
  }

  /**
   * Asks the provider, then keeps the credentials, then registers the webhook where that is done by a call. A provider
   * that cannot be reached does not prevent connecting. `isNew`: nothing was connected before.
   * @throws AppError invalid_request with what is wrong, or with the provider's answer; nothing is stored then
   */
  async connect(
    tenant: ConnectableTenant,
    channel: MessagingChannel,
    settings: unknown,
  ): Promise<{ readonly shown: ConnectedChannel; readonly isNew: boolean }> {
    const given = readBinding(channel, settings);
    const check = await this.#ask(given);
    if (check.state === 'refused' || check.state === 'mismatch') throw new AppError('invalid_request', check.message);
    const before = await readable(tenant, channel);
    const isNew = (await tenant.channels.find(channel)) === undefined;
    const binding = readBinding(channel, { ...given.settings, ...(check.state === 'valid' && check.identifiers) });
    const view = await tenant.channels.connect(channel, binding.settings);
    const webhook = await this.#bringHere(tenant, binding, before);
    const checks = [credentialsChecked(check), ...(webhook === undefined ? [] : [webhook])];
    return { shown: { ...this.#show(tenant, view), checks }, isNew };
  }

  /**
   * Asks the provider again; silence or a refusal is a result, too. Facts of the account that the binding lacks, since
   * it came by a file or the provider was out of reach, are stored.
   * @throws AppError not_found
   */
  async test(tenant: ConnectableTenant, channel: MessagingChannel): Promise<ChannelTest> {
    const view = await this.find(tenant, channel);
    const stored: ChannelCheck & { readonly code: ChannelCheckCode } = {
      name: 'binding',
      ok: view.state === 'enabled',
      message: view.reason === null ? `It is ${view.state}.` : `It is ${view.state}: ${view.reason}`,
      code: `binding_${view.state}`,
      params: view.reason === null ? {} : { reason: view.reason },
    };
    const binding = await readable(tenant, channel);
    if (binding === undefined) return { ok: false, checks: [stored] };
    const check = await this.#ask(binding);
    if (check.state === 'valid') await keepNew(tenant, view, check.identifiers);
    const webhook = await this.#openWebhooks(binding)?.check(this.#listWebhookAddresses(tenant, channel));
    const checks = [stored, credentialsChecked(check), ...(webhook === undefined ? [] : [webhook])];
    return { ok: checks.every(({ ok }) => ok), checks };
  }

  /**
   * Deletes the credentials at once, whether or not the provider can be reached; conversations stay.
   * @throws AppError not_found
   */
  async disconnect(tenant: ConnectableTenant, channel: MessagingChannel): Promise<void> {
    const before = await readable(tenant, channel);
    await tenant.channels.disconnect(channel);
    if (before !== undefined) await this.#openWebhooks(before)?.remove(this.#listWebhookAddresses(tenant, channel));
  }

  /** What its wizard asks for and shows, whether it is connected or not. */
  async describeSetup(tenant: TokenTenant, channel: MessagingChannel): Promise<ChannelSetup> {
    const { label, settings, secrets }: ChannelDefinition = channelDefinitions[channel];
    const isRequired = (schema: z.ZodType): boolean => !schema.safeParse(undefined).success;
    const fields = Object.entries<z.ZodType>(settings.shape).map(([name, schema]) => ({
      name,
      isSecret: secrets.includes(name),
      isRequired: isRequired(schema),
    }));
    return {
      channel,
      app: toAppName(channel),
      label,
      connected: (await tenant.channels.find(channel)) !== undefined,
      webhookUrl: this.#listWebhookAddresses(tenant, channel)[0],
      hasPublicUrl: this.#publicUrl !== undefined,
      verifyToken: await suggestToken(tenant, channel, fields),
      fields,
    };
  }

  async #ask(binding: OpenBinding): Promise<CredentialCheck> {
    return openSender(binding, { urls: this.#urls }).checkCredentials(answerDeadline(this.#timeoutMs));
  }

  /** The webhook of a previous bot is removed: it would go on delivering messages that are not accepted. */
  async #bringHere(tenant: ConnectableTenant, binding: OpenBinding, before: OpenBinding | undefined): Promise<ChannelCheck | undefined> {
    const addresses = this.#listWebhookAddresses(tenant, binding.channel);
    if (before !== undefined && readSelfId(before) !== readSelfId(binding)) await this.#openWebhooks(before)?.remove(addresses);
    return this.#openWebhooks(binding)?.register(addresses);
  }

  #openWebhooks(binding: OpenBinding): ChannelWebhooks | undefined {
    return openWebhooks(binding, { urls: this.#urls, hasPublicUrl: this.#publicUrl !== undefined, timeoutMs: this.#timeoutMs });
  }

  #show(tenant: ConnectableTenant, view: ChannelView): ConnectedChannel {
    return { ...view, webhookUrl: this.#listWebhookAddresses(tenant, view.channel)[0], window: viewWindow(view) };
  }

  #listWebhookAddresses({ tenantId }: ConnectableTenant, channel: MessagingChannel): WebhookAddresses {
    const base = this.#publicUrl ?? '';
    const [byName, byNumber] = webhookPaths(channel, tenantId);
    return [`${base}${byName}`, `${base}${byNumber}`];
  }
}

/** The same for a channel at every look; null where it is connected with another one. */
async function suggestToken(
  tenant: TokenTenant,
  channel: MessagingChannel,
  fields: ChannelSetup['fields'],
): Promise<ChannelSetup['verifyToken']> {
  const field = fields.map(({ name }) => name).find((name) => name === 'verifyToken' || name === 'secretToken');
  if (field === undefined) return null;
  const value = tenant.secrets.deriveToken(`channels/${toAppName(channel)}.${field}`);
  const binding = await readable(tenant, channel);
  const isOther = binding !== undefined && Object.entries(binding.settings).some(([name, set]) => name === field && set !== value);
  return isOther ? null : { field, value };
}

/** undefined when there is none, or its credentials cannot be opened here. */
async function readable({ channels }: ConnectableTenant, channel: MessagingChannel): Promise<OpenBinding | undefined> {
  try {
    const settings = await channels.credentials(channel);
    return settings === undefined ? undefined : readBinding(channel, settings);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

async function keepNew({ channels }: ConnectableTenant, view: ChannelView, found: Readonly<Record<string, string>> = {}): Promise<void> {
  const isNew = Object.entries(found).some(([name, value]) => view.identifiers[name] !== value);
  if (isNew) await channels.learn(view, found);
}

function credentialsChecked(check: CredentialCheck): ChannelCheck {
  const code: ChannelCheckCode = `credentials_${check.state}`;
  if (check.state === 'valid')
    return { name: 'credentials', ok: true, message: `They are those of ${check.account}.`, code, params: { account: check.account } };
  const notAsked = check.state === 'unreachable' ? 'They could not be checked. ' : '';
  return { name: 'credentials', ok: false, message: `${notAsked}${check.message}`, code, params: { reason: check.message } };
}

function viewWindow({ channel, identifiers, lastInboundAt }: ChannelView): ReplyWindowView {
  const lastInboundMs = lastInboundAt === null ? undefined : Date.parse(lastInboundAt);
  return viewReplyWindow(channel, { identifiers }, lastInboundMs);
}

/** Whether free text may be sent in a conversation, as the channel's rule for replies has it. */
export function viewReplyWindow(channel: MessagingChannel, hint: ConversationHint, lastInboundMs: number | undefined): ReplyWindowView {
  const window = replyWindow(channelAdapters[channel].rulesFor(hint), { lastInboundMs, nowMs: Date.now() });
  const untilMs = window.state === 'open' ? window.untilMs : window.state === 'closed' ? window.sinceMs : undefined;
  return { state: window.state, until: untilMs === undefined ? null : new Date(untilMs).toISOString() };
}
