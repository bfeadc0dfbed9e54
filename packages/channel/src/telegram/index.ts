import type { ChannelCheck, ChannelCheckCode, Said, TelegramSettings } from '@concierge/contract';
import type { ChannelAdapter, WebhookRequest, ChannelWebhooks, WebhookAddresses, WebhooksOptions } from '../channel-adapter.ts';
import { readHeader } from '../inbound/signature.ts';
import { answerDeadline, isSameSecret } from '@concierge/runtime';
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
    if (registered.state === 'valid') return brings(url);
    const reason = registered.message;
    return missed({ message: `Telegram did not take the address ${url}: ${reason}`, code: 'webhook_not_taken', params: { url, reason } });
  }

  async remove(addresses: WebhookAddresses): Promise<void> {
    if (this.#options.hasPublicUrl) await this.#sender.removeWebhook(addresses, this.#deadline());
  }

  async check(addresses: WebhookAddresses): Promise<ChannelCheck> {
    const webhook = await this.#sender.findWebhook(this.#deadline());
    if ('failure' in webhook) {
      const { reason } = webhook;
      return missed({ message: `Telegram did not say where it brings messages: ${reason}`, code: 'webhook_not_said', params: { reason } });
    }
    const problem = this.#findProblem(webhook, addresses);
    return problem === undefined ? brings(webhook.url) : missed(problem);
  }

  #findProblem(
    { url, lastError, waitingUpdates, missingUpdates }: TelegramWebhook,
    addresses: WebhookAddresses,
  ): Said<ChannelCheckCode> | undefined {
    const remedy = this.#options.hasPublicUrl ? 'connect it again, and it is registered' : 'register it with setWebhook';
    const expected = addresses[0];
    const should = `It should be ${expected}: ${remedy}.`;
    if (url === '') return { message: `Telegram brings messages nowhere. ${should}`, code: 'webhook_nowhere', params: { expected } };
    if (!this.#isOurs(url, addresses))
      return { message: `Telegram brings messages to ${url}. ${should}`, code: 'webhook_elsewhere', params: { url, expected } };
    const kinds = missingUpdates.join(', ');
    if (kinds !== '')
      return { message: `Telegram was not asked for ${kinds}: ${remedy}.`, code: 'webhook_kinds_missing', params: { kinds } };
    // An error of the past, after which everything was taken, is none.
    if (lastError === undefined || waitingUpdates === 0) return undefined;
    const count = String(waitingUpdates);
    const params = { count, reason: lastError };
    return { message: `Telegram could not bring ${count} updates: ${lastError}`, code: 'webhook_failing', params };
  }

  /** The part before the path is known only where PUBLIC_URL is set. */
  #isOurs(url: string, addresses: WebhookAddresses): boolean {
    const pathname = URL.parse(url)?.pathname;
    return this.#options.hasPublicUrl ? addresses.includes(url) : addresses.some((path) => pathname?.endsWith(path) === true);
  }

  #deadline(): AbortSignal {
    return answerDeadline(this.#options.timeoutMs);
  }
}

function brings(url: string): ChannelCheck {
  return { name: 'webhook', ok: true, message: `Telegram brings messages to ${url}.`, code: 'webhook_brings', params: { url } };
}

function missed(problem: Said<ChannelCheckCode>): ChannelCheck {
  return { name: 'webhook', ok: false, message: problem.message, code: problem.code, params: problem.params };
}
