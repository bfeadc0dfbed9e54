import type { ChannelSettings } from '@concierge/contract';
import { z } from 'zod';
import { askProvider, type NoAnswer, type ProviderAnswer } from '../outbound/ask-provider.ts';
import type { ChannelSender, CredentialCheck, OutgoingMessage, TypingRequest } from '../outbound/channel-sender.ts';
import { download, FileUnavailableError, unnamed, type FetchedFile, type FileRequest } from '../outbound/fetch-file.ts';
import { below } from '../outbound/provider-urls.ts';
import type { SenderOptions } from '../outbound/sender-options.ts';
import type { SendOutcome } from '../outbound/send-outcome.ts';
import { outcomeOfSlackSend } from './answer.ts';
import { mediaSources } from './media-sources.ts';
import { escapeText } from './surface.ts';

const Ok = z.object({ ok: z.literal(true) });
const Identity = z.object({
  ok: z.literal(true),
  team_id: z.string(),
  user_id: z.string(),
  team: z.string().optional(),
  bot_id: z.string().optional(),
});
const BotInfo = z.object({ ok: z.literal(true), bot: z.object({ app_id: z.string().regex(/^[A-Za-z0-9]{1,128}$/u) }) });
const Problem = z.object({ ok: z.literal(false), error: z.string() });
const FileInfo = z.object({
  ok: z.literal(true),
  file: z.object({ url_private_download: z.string().optional(), url_private: z.string().optional(), size: z.number().optional() }),
});

type Settings = Pick<ChannelSettings['channel_d'], 'botToken' | 'teamId' | 'botUserId' | 'appId'>;

/** Slack Web API. */
export class SlackSender implements ChannelSender {
  /** The indicator stays for two minutes. */
  readonly typingRepeatMs = 60_000;
  readonly #settings: Settings;
  readonly #base: string;
  readonly #timeoutMs: number | undefined;

  constructor(settings: Settings, { urls, timeoutMs }: SenderOptions) {
    this.#settings = settings;
    this.#base = urls.slack;
    this.#timeoutMs = timeoutMs;
  }

  async send({ to, thread, part, form }: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const answer = await this.#call(
      'chat.postMessage',
      {
        channel: to,
        ...(form === 'plain' ? { text: escapeText(part.plain), mrkdwn: false } : { text: part.text }),
        ...(thread !== undefined && { thread_ts: thread }),
        // A preview is a request to an address that a model wrote, made before a reader has seen it.
        unfurl_links: false,
        unfurl_media: false,
      },
      signal,
    );
    return outcomeOfSlackSend(answer);
  }

  /** Only threads with an assistant have one. */
  async showTyping({ to, thread }: TypingRequest, signal: AbortSignal): Promise<boolean> {
    if (thread === undefined || signal.aborted) return false;
    const answer = await this.#call('assistant.threads.setStatus', { channel_id: to, thread_ts: thread, status: 'is typing…' }, signal);
    return 'status' in answer && Ok.safeParse(answer.body).success;
  }

  async checkCredentials(signal: AbortSignal): Promise<CredentialCheck> {
    const answer = await this.#call('auth.test', {}, signal);
    if ('failure' in answer) return { state: 'unreachable', message: answer.reason };
    const identity = Identity.safeParse(answer.body);
    if (!identity.success) return refusalOf(answer);
    const { team_id: teamId, user_id: userId, team, bot_id: botId } = identity.data;
    if (teamId !== this.#settings.teamId) return { state: 'mismatch', message: `The bot token belongs to the workspace ${teamId}.` };
    if (userId !== this.#settings.botUserId) return { state: 'mismatch', message: `The bot token belongs to the bot user ${userId}.` };
    const account = team ?? teamId;
    const appId = botId === undefined ? undefined : await this.#appOf(botId, signal);
    if (appId === undefined) return { state: 'valid', account };
    if (this.#settings.appId !== undefined && this.#settings.appId !== appId)
      return { state: 'mismatch', message: `The bot token belongs to the app ${appId}.` };
    return { state: 'valid', account, identifiers: { appId } };
  }

  /** By its address, or by its id where Slack Connect gives no address. */
  async fetchFile({ file: named, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    const url = named.url ?? (await this.#addressOf(named.id, signal));
    const file = await download({
      url,
      headers: { authorization: `Bearer ${this.#settings.botToken}` },
      maxBytes,
      sources: mediaSources,
      base: this.#base,
      signal,
    });
    // With a token that may not read files Slack answers 200, and a page to log in on.
    if (file.contentType.startsWith('text/html'))
      throw new FileUnavailableError('refused', 'Slack did not give the file: the bot needs the scope files:read.');
    return file;
  }

  /** Slack answers only a bot with the scope users:read; without it an item is compared by its workspace alone. */
  async #appOf(bot: string, signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return undefined;
    const url = below(this.#base, `bots.info?bot=${encodeURIComponent(bot)}`);
    const answer = await askProvider({ url, headers: this.#authorization(), signal });
    return 'failure' in answer ? undefined : BotInfo.safeParse(answer.body).data?.bot.app_id;
  }

  async #addressOf(file: string | null, signal: AbortSignal): Promise<string> {
    if (file === null) throw unnamed();
    const url = below(this.#base, `files.info?file=${encodeURIComponent(file)}`);
    const answer = await askProvider({ url, headers: this.#authorization(), signal });
    if ('failure' in answer) throw new FileUnavailableError('unreachable', answer.reason);
    const found = FileInfo.safeParse(answer.body).data?.file;
    const address = found?.url_private_download ?? found?.url_private;
    if (address === undefined) throw new FileUnavailableError('gone', 'Slack does not have the file, or does not show it to the bot.');
    return address;
  }

  async #call(method: string, body: object, signal: AbortSignal): Promise<ProviderAnswer | NoAnswer> {
    const timeout = this.#timeoutMs !== undefined && { timeoutMs: this.#timeoutMs };
    return askProvider({ url: below(this.#base, method), headers: this.#authorization(), body, signal, ...timeout });
  }

  #authorization(): Readonly<Record<string, string>> {
    return { authorization: `Bearer ${this.#settings.botToken}` };
  }
}

function refusalOf(answer: ProviderAnswer): CredentialCheck {
  const outcome = outcomeOfSlackSend(answer);
  const error = Problem.safeParse(answer.body).data?.error;
  if (error === undefined || outcome.kind === 'retry')
    return { state: 'unreachable', message: `Slack answered with status ${String(answer.status)}.` };
  return { state: 'refused', message: `Slack refused the bot token: ${error}` };
}
