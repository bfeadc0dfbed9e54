import type { SlackSettings } from '@concierge/contract';
import { z } from 'zod';
import {
  askProvider,
  type NoAnswer,
  type ProviderAnswer,
  classifyNoAnswer,
  classifyStatus,
  retryAfterMs,
} from '../outbound/ask-provider.ts';
import type { ChannelSender, CredentialCheck, OutgoingMessage, TypingRequest, SenderOptions } from '../outbound/channel-sender.ts';
import { download, FileUnavailableError, unnamed, type FetchedFile, type FileRequest, type MediaSources } from '../outbound/fetch-file.ts';
import { below } from '../outbound/provider-environment.ts';
import { failed, retry, type FinalKind, type SendOutcome } from '../outbound/send-outcome.ts';
import { ZERO_WIDTH_SPACE, aroundLines, beforeLines, fenced, ticked, writeMarkup, type Dialect, utf16Units } from '../outbound/dialect.ts';
import type { RichText } from '../outbound/rich-text.ts';
import type { SendingRules } from '../outbound/sending-rules.ts';

export const mediaSources: MediaSources = { withToken: ['slack.com'], open: [] };

const Sent = z.object({ ok: z.literal(true), ts: z.string().min(1) });
const Refused = z.object({ ok: z.literal(false), error: z.string() });

const errors: ReadonlyMap<string, FinalKind | 'retry'> = new Map(
  Object.entries({
    retry: [
      'ratelimited',
      'rate_limited',
      'internal_error',
      'request_timeout',
      'service_unavailable',
      // The workspace is being moved.
      'org_login_required',
      'team_added_to_org',
    ],
    recipient_failed: [
      'channel_not_found',
      'not_in_channel',
      'is_archived',
      'messages_tab_disabled',
      'user_not_found',
      'user_disabled',
      'cannot_dm_bot',
      // The bot is not a member, or may not write there; other conversations take its messages.
      'no_permission',
      'access_denied',
      'ekm_access_denied',
      'team_access_not_granted',
    ],
    binding_failed: ['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired', 'missing_scope'],
    // A part of it may have been done.
    unknown: ['fatal_error'],
    resend_plain: ['message_not_in_streaming_state'],
  } satisfies Partial<Record<FinalKind | 'retry', string[]>>).flatMap(([kind, names]) =>
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the keys are these, which Object.entries forgets
    names.map((name) => [name, kind as FinalKind | 'retry'] as const),
  ),
);

/** Slack reports errors in the body of a 200. */
export function classifySlackSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  if ('failure' in answer) return classifyNoAnswer(answer);
  const sent = Sent.safeParse(answer.body);
  if (sent.success) return { kind: 'sent', providerMessageId: sent.data.ts };
  const refused = Refused.safeParse(answer.body);
  if (!refused.success) return classifyStatus(answer);
  const code = refused.data.error;
  const problem = { code, message: `Slack answered ${code}.` };
  const kind = errors.get(code) ?? 'refused';
  return kind === 'retry' ? retry(problem, { afterMs: retryAfterMs(answer.headers) }) : failed(kind, problem);
}

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

type Settings = Pick<SlackSettings, 'botToken' | 'teamId' | 'botUserId' | 'appId'>;

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
    return classifySlackSend(answer);
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
    if (!identity.success) return toRefusal(answer);
    const { team_id: teamId, user_id: userId, team, bot_id: botId } = identity.data;
    if (teamId !== this.#settings.teamId) return { state: 'mismatch', message: `The bot token belongs to the workspace ${teamId}.` };
    if (userId !== this.#settings.botUserId) return { state: 'mismatch', message: `The bot token belongs to the bot user ${userId}.` };
    const account = team ?? teamId;
    const appId = botId === undefined ? undefined : await this.#findApp(botId, signal);
    if (appId === undefined) return { state: 'valid', account };
    if (this.#settings.appId !== undefined && this.#settings.appId !== appId)
      return { state: 'mismatch', message: `The bot token belongs to the app ${appId}.` };
    return { state: 'valid', account, identifiers: { appId } };
  }

  /** By its address, or by its id where Slack Connect gives no address. */
  async fetchFile({ file: named, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    const url = named.url ?? (await this.#findAddress(named.id, signal));
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
  async #findApp(bot: string, signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return undefined;
    const url = below(this.#base, `bots.info?bot=${encodeURIComponent(bot)}`);
    const answer = await askProvider({ url, headers: this.#authorization(), signal });
    return 'failure' in answer ? undefined : BotInfo.safeParse(answer.body).data?.bot.app_id;
  }

  async #findAddress(file: string | null, signal: AbortSignal): Promise<string> {
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

function toRefusal(answer: ProviderAnswer): CredentialCheck {
  const outcome = classifySlackSend(answer);
  const error = Problem.safeParse(answer.body).data?.error;
  if (error === undefined || outcome.kind === 'retry')
    return { state: 'unreachable', message: `Slack answered with status ${String(answer.status)}.` };
  return { state: 'refused', message: `Slack refused the bot token: ${error}` };
}

const markup = {
  escape: escapeText,
  parting: ZERO_WIDTH_SPACE,
  wrap: {
    // Inside, > is written as an entity: only these open a quote.
    quote: beforeLines('> '),
    pre: fenced,
    link: (inside: string, url: string) =>
      `<${escapeText(url).replaceAll('|', '%7C')}|${inside.replaceAll('|', '¦').replaceAll('\n', ' ')}>`,
    bold: aroundLines('*'),
    italic: aroundLines('_'),
    strike: aroundLines('~'),
    code: ticked,
  },
};

/** Without it the text of a model could call all members of a workspace (`<!channel>`). */
function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function render(rich: RichText): string {
  return writeMarkup(rich, markup);
}

const dialect: Dialect = { maxLength: 4000, render, lengthOf: (rich) => utf16Units(render(rich)) };

export const slackRules: SendingRules = {
  name: 'slack',
  dialect,
  pace: () => ({ conversationIntervalMs: 1000, conversationBurst: 1, bindingPerSecond: 30 }),
  replyWindowMs: null,
};
