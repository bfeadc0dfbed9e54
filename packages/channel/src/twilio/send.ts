import type { TwilioSettings } from '@concierge/contract';
import { z } from 'zod';
import { download, unnamed, type FetchedFile, type FileRequest, type MediaSources } from '../outbound/fetch-file.ts';
import {
  askProvider,
  classifyNoAnswer,
  classifyStatus,
  retryAfterMs,
  type NoAnswer,
  type ProviderAnswer,
} from '../outbound/ask-provider.ts';
import type { ChannelSender, CredentialCheck, OutgoingMessage, SenderOptions } from '../outbound/channel-sender.ts';
import { below } from '../outbound/provider-environment.ts';
import { failed, retry, type FinalKind, type SendOutcome } from '../outbound/send-outcome.ts';
import { statusCallback } from './wire.ts';

const Sent = z.object({ sid: z.string().min(1) });
const Refused = z.object({ code: z.number(), message: z.string().default('') });
const Account = z.object({ sid: z.string(), status: z.string(), friendly_name: z.string().optional() });

/** Files lie at the API, which leads on to its store with an address that is signed. */
export const mediaSources: MediaSources = { withToken: ['api.twilio.com'], open: ['twiliocdn.com'] };

const classes: readonly (readonly [FinalKind | 'retry', readonly number[]])[] = [
  // Too many requests; the queue of this sender is full; more than it may send in a second, or the channel behind it.
  ['retry', [20429, 21611, 14107, 63018]],
  ['window_closed', [63016]],
  // No number that can be written to: none at all, a landline, a short code, the sender itself.
  ['recipient_failed', [21211, 21214, 21217, 21265, 21266, 21614, 21635, 63003, 63024]],
  // They have opted out (STOP), or blocked the sender.
  ['recipient_failed', [21610, 63033]],
  // Not from this sender, or not from a trial account; a country that the account may not write to.
  ['recipient_failed', [21408, 21608, 21612, 21910]],
  // Credentials; an account that is not there, suspended or closed.
  ['binding_failed', [20003, 20005, 20008, 20404, 90010]],
  // The sender is none, or another account's.
  ['binding_failed', [21212, 21603, 21606, 21659, 21660, 21661, 21701, 21703, 21705, 63007]],
];

const kinds = new Map(classes.flatMap(([kind, codes]) => codes.map((code) => [code, kind] as const)));

/** The outcome of a call that sends. The code decides; the status is what is left where there is none. */
export function classifyTwilioSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  if ('failure' in answer) return classifyNoAnswer(answer);
  const sent = Sent.safeParse(answer.body);
  if (answer.status < 300 && sent.success) return { kind: 'sent', providerMessageId: sent.data.sid };
  const refused = Refused.safeParse(answer.body);
  if (!refused.success) return classifyStatus(answer);
  const problem = { code: String(refused.data.code), message: refused.data.message };
  const kind = kinds.get(refused.data.code) ?? toKind(answer.status);
  return kind === 'retry' ? retry(problem, { afterMs: retryAfterMs(answer.headers) }) : failed(kind, problem);
}

function toKind(status: number): FinalKind | 'retry' {
  if (status === 429 || status >= 500) return 'retry';
  return status === 401 ? 'binding_failed' : 'refused';
}

/** Twilio's Messages resource. There is no typing indicator for SMS. */
export class TwilioSender implements ChannelSender {
  readonly typingRepeatMs = 60_000;
  readonly #settings: TwilioSettings;
  readonly #base: string;
  readonly #timeoutMs: number | undefined;
  readonly #webhookUrl: string | undefined;

  constructor(settings: TwilioSettings, { urls, timeoutMs, webhookUrl }: SenderOptions) {
    this.#settings = settings;
    this.#base = urls.twilio;
    this.#timeoutMs = timeoutMs;
    this.#webhookUrl = webhookUrl;
  }

  async send({ to, part, form, reference }: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const { from, messagingServiceSid } = this.#settings;
    const body = new URLSearchParams({
      To: to,
      ...(from !== undefined && { From: from }),
      ...(messagingServiceSid !== undefined && { MessagingServiceSid: messagingServiceSid }),
      Body: form === 'plain' ? part.plain : part.text,
      ...(this.#webhookUrl !== undefined && { StatusCallback: statusCallback(this.#webhookUrl, reference) }),
    });
    return classifyTwilioSend(await this.#ask('/Messages.json', signal, body));
  }

  async showTyping(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async checkCredentials(signal: AbortSignal): Promise<CredentialCheck> {
    const answer = await this.#ask('.json', signal);
    if ('failure' in answer) return { state: 'unreachable', message: answer.reason };
    const account = Account.safeParse(answer.body).data;
    if (answer.status === 200 && account !== undefined) {
      if (account.status !== 'active') return { state: 'refused', message: `The account of Twilio is ${account.status}.` };
      return { state: 'valid', account: account.friendly_name ?? account.sid };
    }
    if (answer.status === 401 || answer.status === 404)
      return { state: 'refused', message: 'Twilio does not know this account, or the auth token is another one’s.' };
    return { state: 'unreachable', message: `Twilio answered with status ${String(answer.status)}.` };
  }

  async fetchFile({ file, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    if (file.url === null) throw unnamed();
    return download({ url: file.url, headers: this.#authorization(), maxBytes, sources: mediaSources, base: this.#base, signal });
  }

  async #ask(resource: string, signal: AbortSignal, body?: URLSearchParams): Promise<ProviderAnswer | NoAnswer> {
    return askProvider({
      url: below(this.#base, `2010-04-01/Accounts/${this.#settings.accountSid}${resource}`),
      headers: this.#authorization(),
      ...(body !== undefined && { body }),
      ...(this.#timeoutMs !== undefined && { timeoutMs: this.#timeoutMs }),
      signal,
    });
  }

  #authorization(): Readonly<Record<string, string>> {
    const { accountSid, authToken } = this.#settings;
    return { authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}` };
  }
}
