import type { ChannelCheck, ChannelSettings } from '@concierge/contract';
import type { ChannelWebhooks, WebhookPlaces, WebhooksOptions } from '../channel-adapter.ts';
import { TelegramSender, type TelegramWebhook } from './send.ts';

/** An API call sets Telegram's webhook address; the other providers' pages set theirs. */
export class TelegramWebhooks implements ChannelWebhooks {
  readonly #sender: TelegramSender;
  readonly #secretToken: string;
  readonly #options: Pick<WebhooksOptions, 'hasPublicUrl' | 'timeoutMs'>;

  constructor(settings: ChannelSettings['channel_c'], options: WebhooksOptions) {
    this.#sender = new TelegramSender(settings, options);
    this.#secretToken = settings.secretToken;
    this.#options = options;
  }

  async register([url]: WebhookPlaces): Promise<ChannelCheck | undefined> {
    if (!this.#options.hasPublicUrl) return undefined;
    const registered = await this.#sender.registerWebhook({ url, secretToken: this.#secretToken }, this.#deadline());
    if (registered.state === 'valid') return found(true, `Telegram brings messages to ${url}.`);
    return found(false, `Telegram did not take the address ${url}: ${registered.message}`);
  }

  async remove(places: WebhookPlaces): Promise<void> {
    if (this.#options.hasPublicUrl) await this.#sender.removeWebhook(places, this.#deadline());
  }

  async check(places: WebhookPlaces): Promise<ChannelCheck> {
    const webhook = await this.#sender.findWebhook(this.#deadline());
    if ('failure' in webhook) return found(false, `Telegram did not say where it brings messages: ${webhook.reason}`);
    const problem = this.#problemOf(webhook, places);
    return problem === undefined ? found(true, `Telegram brings messages to ${webhook.url}.`) : found(false, problem);
  }

  #problemOf({ url, lastError, waitingUpdates, missingUpdates }: TelegramWebhook, places: WebhookPlaces): string | undefined {
    const remedy = this.#options.hasPublicUrl ? 'connect it again, and it is registered' : 'register it with setWebhook';
    if (url === '') return `Telegram brings messages nowhere. It should be ${places[0]}: ${remedy}.`;
    if (!this.#isOurs(url, places)) return `Telegram brings messages to ${url}. It should be ${places[0]}: ${remedy}.`;
    if (missingUpdates.length > 0) return `Telegram was not asked for ${missingUpdates.join(', ')}: ${remedy}.`;
    // An error of the past, after which everything was taken, is none.
    if (lastError === undefined || waitingUpdates === 0) return undefined;
    return `Telegram could not bring ${String(waitingUpdates)} updates: ${lastError}`;
  }

  /** The part before the path is known only where PUBLIC_URL is set. */
  #isOurs(url: string, places: WebhookPlaces): boolean {
    const pathname = URL.parse(url)?.pathname;
    return this.#options.hasPublicUrl ? places.includes(url) : places.some((path) => pathname?.endsWith(path) === true);
  }

  #deadline(): AbortSignal {
    return AbortSignal.timeout(this.#options.timeoutMs);
  }
}

function found(ok: boolean, message: string): ChannelCheck {
  return { name: 'webhook', ok, message };
}
