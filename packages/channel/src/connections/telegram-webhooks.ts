import type { ChannelCheck, ChannelSettings } from '@concierge/contract';
import type { ProviderUrls } from '../outbound/provider-urls.ts';
import { TelegramSender, type TelegramWebhook } from '../telegram/send.ts';

type Settings = ChannelSettings['channel_c'];

/** Addresses that lead to a binding: the first is the one that providers are given. Without PUBLIC_URL they are paths. */
export type WebhookPlaces = readonly [string, ...string[]];

export interface TelegramWebhooksOptions {
  readonly urls: ProviderUrls;
  readonly hasPublicUrl: boolean;
  /** For each question. */
  readonly timeoutMs: number;
}

/** Telegram is told by a call where to bring messages; of the other apps a person tells it on their pages. */
export class TelegramWebhooks {
  readonly #options: TelegramWebhooksOptions;

  constructor(options: TelegramWebhooksOptions) {
    this.#options = options;
  }

  /** undefined: nobody has said where Telegram would reach us, so it is done by hand. */
  async register(settings: Settings, [url]: WebhookPlaces): Promise<ChannelCheck | undefined> {
    if (!this.#options.hasPublicUrl) return undefined;
    const registered = await this.#sender(settings).registerWebhook({ url, secretToken: settings.secretToken }, this.#deadline());
    if (registered.state === 'valid') return found(true, `Telegram brings messages to ${url}.`);
    return found(false, `Telegram did not take the address ${url}: ${registered.message}`);
  }

  /** As far as Telegram can be reached: what it brings to an address without a binding is refused there. */
  async remove(settings: Settings, places: WebhookPlaces): Promise<void> {
    if (this.#options.hasPublicUrl) await this.#sender(settings).removeWebhook(places, this.#deadline());
  }

  async check(settings: Settings, places: WebhookPlaces): Promise<ChannelCheck> {
    const webhook = await this.#sender(settings).findWebhook(this.#deadline());
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

  /** What stands before the path is known only where PUBLIC_URL says so. */
  #isOurs(url: string, places: WebhookPlaces): boolean {
    const pathname = URL.parse(url)?.pathname;
    return this.#options.hasPublicUrl ? places.includes(url) : places.some((path) => pathname?.endsWith(path) === true);
  }

  #deadline(): AbortSignal {
    return AbortSignal.timeout(this.#options.timeoutMs);
  }

  #sender(settings: Settings): TelegramSender {
    return new TelegramSender(settings, { urls: this.#options.urls });
  }
}

function found(ok: boolean, message: string): ChannelCheck {
  return { name: 'webhook', ok, message };
}
