import type { ChannelCheck, TelegramSettings } from '@concierge/contract';
import type { ChannelAdapter, WebhookRequest, ChannelWebhooks, WebhookAddresses, WebhooksOptions } from '../channel-adapter.ts';
import { readHeader } from '../inbound/signature.ts';
import { isSameSecret } from '@concierge/runtime';
import { parseTelegram } from './parse.ts';
import { mediaSources, TelegramSender, type TelegramWebhook } from './send.ts';
import { writeMarkup, type Dialect, utf16Units } from '../outbound/dialect.ts';
import { joinText, type RichText } from '../outbound/rich-text.ts';
import type { SendingRules } from '../outbound/sending-rules.ts';

const tag = (name: string) => (inside: string) => `<${name}>${inside}</${name}>`;

const markup = {
  escape: escapeHtml,
  wrap: {
    quote: tag('blockquote'),
    pre: (inside: string, language: string) =>
      /^[\w+#.-]+$/u.test(language) ? `<pre><code class="language-${language}">${inside}</code></pre>` : tag('pre')(inside),
    link: (inside: string, url: string) => `<a href="${escapeHtml(url).replaceAll('"', '&quot;')}">${inside}</a>`,
    bold: tag('b'),
    italic: tag('i'),
    strike: tag('s'),
    code: tag('code'),
  },
};

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function render(rich: RichText): string {
  return writeMarkup(rich, markup);
}

/**
 * HTML, in which three signs are escaped, and not MarkdownV2, in which eighteen are. Tags do not count: the limit is on
 * what is left after reading them.
 */
const dialect: Dialect = { maxLength: 4096, render, lengthOf: (rich) => utf16Units(joinText(rich)) };

const chatPace = { conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 };
/** Telegram takes 20 messages a minute in a group, and limits groups each by itself. */
const groupPace = { ...chatPace, conversationIntervalMs: 3000, isOwnLimit: true };

const telegramRules: SendingRules = {
  name: 'telegram',
  dialect,
  // The ids of groups are negative.
  pace: (to) => (to.startsWith('-') ? groupPace : chatPace),
  replyWindowMs: null,
};

/** Telegram's own spelling first; the other one is the service interface's. */
const headerNames = ['x-telegram-bot-api-secret-token', 'x-messenger-bot-api-secret-token'];

/** Telegram Bot API. */
export const telegram: ChannelAdapter<TelegramSettings> = {
  verify: verifyTelegram,
  parse: parseTelegram,
  /** The digits before the colon stay when a token is made anew. */
  selfId: ({ botToken }) => botToken.split(':', 1)[0] ?? '',
  openSender: (settings, options) => new TelegramSender(settings, options),
  openWebhooks: (settings, options) => new TelegramWebhooks(settings, options),
  allRules: [telegramRules],
  rulesFor: () => telegramRules,
  mediaSources,
};

/** No signature: the token that Telegram was given when the webhook was registered. */
function verifyTelegram(request: WebhookRequest, settings: TelegramSettings | undefined): boolean {
  const given = headerNames.map((name) => readHeader(request, name)).find((token) => token !== undefined);
  return isSameSecret(given, settings?.secretToken);
}

/** An API call sets Telegram's webhook address; the other providers' pages set theirs. */
class TelegramWebhooks implements ChannelWebhooks {
  readonly #sender: TelegramSender;
  readonly #secretToken: string;
  readonly #options: Pick<WebhooksOptions, 'hasPublicUrl' | 'timeoutMs'>;

  constructor(settings: TelegramSettings, options: WebhooksOptions) {
    this.#sender = new TelegramSender(settings, options);
    this.#secretToken = settings.secretToken;
    this.#options = options;
  }

  async register([url]: WebhookAddresses): Promise<ChannelCheck | undefined> {
    if (!this.#options.hasPublicUrl) return undefined;
    const registered = await this.#sender.registerWebhook({ url, secretToken: this.#secretToken }, this.#deadline());
    if (registered.state === 'valid') return found(true, `Telegram brings messages to ${url}.`);
    return found(false, `Telegram did not take the address ${url}: ${registered.message}`);
  }

  async remove(addresses: WebhookAddresses): Promise<void> {
    if (this.#options.hasPublicUrl) await this.#sender.removeWebhook(addresses, this.#deadline());
  }

  async check(addresses: WebhookAddresses): Promise<ChannelCheck> {
    const webhook = await this.#sender.findWebhook(this.#deadline());
    if ('failure' in webhook) return found(false, `Telegram did not say where it brings messages: ${webhook.reason}`);
    const problem = this.#findProblem(webhook, addresses);
    return problem === undefined ? found(true, `Telegram brings messages to ${webhook.url}.`) : found(false, problem);
  }

  #findProblem({ url, lastError, waitingUpdates, missingUpdates }: TelegramWebhook, addresses: WebhookAddresses): string | undefined {
    const remedy = this.#options.hasPublicUrl ? 'connect it again, and it is registered' : 'register it with setWebhook';
    if (url === '') return `Telegram brings messages nowhere. It should be ${addresses[0]}: ${remedy}.`;
    if (!this.#isOurs(url, addresses)) return `Telegram brings messages to ${url}. It should be ${addresses[0]}: ${remedy}.`;
    if (missingUpdates.length > 0) return `Telegram was not asked for ${missingUpdates.join(', ')}: ${remedy}.`;
    // An error of the past, after which everything was taken, is none.
    if (lastError === undefined || waitingUpdates === 0) return undefined;
    return `Telegram could not bring ${String(waitingUpdates)} updates: ${lastError}`;
  }

  /** The part before the path is known only where PUBLIC_URL is set. */
  #isOurs(url: string, addresses: WebhookAddresses): boolean {
    const pathname = URL.parse(url)?.pathname;
    return this.#options.hasPublicUrl ? addresses.includes(url) : addresses.some((path) => pathname?.endsWith(path) === true);
  }

  #deadline(): AbortSignal {
    return AbortSignal.timeout(this.#options.timeoutMs);
  }
}

function found(ok: boolean, message: string): ChannelCheck {
  return { name: 'webhook', ok, message };
}
