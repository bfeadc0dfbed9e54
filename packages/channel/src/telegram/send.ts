import type { TelegramSettings } from '@concierge/contract';
import { z } from 'zod';
import {
  askProvider,
  type NoAnswer,
  type ProviderAnswer,
  classifyNoAnswer,
  classifyStatus,
  retryAfterMs,
} from '../outbound/ask-provider.ts';
import type { ChannelSender, CredentialCheck, Destination, OutgoingMessage, SenderOptions } from '../outbound/channel-sender.ts';
import { download, FileUnavailableError, unnamed, type FetchedFile, type FileRequest, type MediaSources } from '../outbound/fetch-file.ts';
import { below } from '../outbound/provider-environment.ts';
import { failed, retry, type FinalKind, type SendOutcome } from '../outbound/send-outcome.ts';

const Sent = z.object({ ok: z.literal(true), result: z.object({ message_id: z.number() }) });

const Refused = z.object({
  ok: z.literal(false),
  error_code: z.number(),
  description: z.string().default(''),
  parameters: z.object({ retry_after: z.number().optional(), migrate_to_chat_id: z.number().optional() }).default({}),
});
type Refused = z.infer<typeof Refused>;

/** The only sign of these cases is the sentence: Telegram has one code for all of them. */
const sentences: readonly (readonly [RegExp, FinalKind])[] = [
  [/can't parse (?:entities|message text|caption)|unsupported start tag|can't find end/iu, 'resend_plain'],
  [/message to (?:be replied|reply) not found|replied message not found/iu, 'resend_without_reply'],
  [/chat not found|user not found|PEER_ID_INVALID|CHAT_WRITE_FORBIDDEN|not enough rights|have no rights/iu, 'recipient_failed'],
];

/** The outcome of a call that sends. */
export function classifyTelegramSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  if ('failure' in answer) return classifyNoAnswer(answer);
  const sent = Sent.safeParse(answer.body);
  if (sent.success) return { kind: 'sent', providerMessageId: String(sent.data.result.message_id) };
  const refused = Refused.safeParse(answer.body);
  return refused.success ? classifyRefusal(refused.data, answer.headers) : classifyStatus(answer);
}

function classifyRefusal(refused: Refused, headers: Headers): SendOutcome {
  const { error_code: code, description, parameters } = refused;
  const problem = { code: String(code), message: description };
  if (code === 429) {
    const seconds = parameters.retry_after;
    return retry(problem, { afterMs: seconds === undefined ? retryAfterMs(headers) : seconds * 1000 });
  }
  if (code >= 500) return retry(problem);
  if (code === 401 || code === 404) return failed('binding_failed', problem);
  if (code === 403) return failed('recipient_failed', problem);
  return classifyBadRequest(refused);
}

function classifyBadRequest({ error_code: code, description, parameters }: Refused): SendOutcome {
  const problem = { code: String(code), message: description };
  const to = parameters.migrate_to_chat_id;
  if (to !== undefined) return { kind: 'resend_to', to: String(to), ...problem };
  // The text of an edit is there already.
  if (description.includes('message is not modified')) return { kind: 'sent', providerMessageId: undefined };
  return failed(sentences.find(([sentence]) => sentence.test(description))?.[1] ?? 'refused', problem);
}

const Bot = z.object({
  ok: z.literal(true),
  // A name that no message could mention is none.
  result: z.object({
    id: z.number(),
    username: z
      .string()
      .regex(/^\w{1,64}$/u)
      .optional()
      .catch(undefined),
  }),
});
const FileAddress = z.object({ ok: z.literal(true), result: z.object({ file_path: z.string(), file_size: z.number().optional() }) });
const Done = z.object({ ok: z.literal(true) });
const Problem = z.object({ description: z.string() });
const WebhookInfo = z.object({
  ok: z.literal(true),
  result: z.object({
    url: z.string(),
    pending_update_count: z.number().default(0),
    last_error_message: z.string().optional(),
    allowed_updates: z.array(z.string()).optional(),
  }),
});

/** Files are fetched from the API itself, at the operator's address of it. */
export const mediaSources: MediaSources = { withToken: [], open: [] };

/** The updates that the inbound side reads; without the list Telegram sends many others. */
const UPDATES = ['message', 'callback_query', 'my_chat_member'];

/** What Telegram reports of a bot's webhook. */
export interface TelegramWebhook {
  /** Empty: none is registered. */
  readonly url: string;
  readonly waitingUpdates: number;
  readonly lastError: string | undefined;
  /** The updates that are read here, but are not requested from Telegram. */
  readonly missingUpdates: readonly string[];
}

/** Telegram Bot API. Its token stands in every address, so no address is ever part of a message or a log. */
export class TelegramSender implements ChannelSender {
  /** The indicator disappears after five seconds. */
  readonly typingRepeatMs = 4000;
  readonly #token: string;
  readonly #botUsername: string | undefined;
  readonly #base: string;
  readonly #timeoutMs: number | undefined;

  constructor(settings: Pick<TelegramSettings, 'botToken' | 'botUsername'>, { urls, timeoutMs }: SenderOptions) {
    this.#token = settings.botToken;
    this.#botUsername = settings.botUsername;
    this.#base = urls.telegram;
    this.#timeoutMs = timeoutMs;
  }

  async send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const { part, form } = message;
    const answer = await this.#call(
      'sendMessage',
      {
        ...toChat(message),
        ...(form === 'plain' ? { text: part.plain } : { text: part.text, parse_mode: 'HTML' }),
        // A preview is a request to an address that a model wrote, made before a reader has seen it.
        link_preview_options: { is_disabled: true },
        ...buildReplyParameters(message),
      },
      signal,
    );
    return classifyTelegramSend(answer);
  }

  async showTyping(request: Destination, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const answer = await this.#call('sendChatAction', { ...toChat(request), action: 'typing' }, signal);
    return isDone(answer);
  }

  async checkCredentials(signal: AbortSignal): Promise<CredentialCheck> {
    const answer = await this.#call('getMe', {}, signal);
    if ('failure' in answer) return { state: 'unreachable', message: answer.reason };
    const bot = Bot.safeParse(answer.body);
    if (bot.success) return this.#checkName(bot.data.result);
    const isRefused = answer.status === 401 || answer.status === 404;
    return isRefused
      ? { state: 'refused', message: 'Telegram does not know this bot token.' }
      : { state: 'unreachable', message: `Telegram answered with status ${String(answer.status)}.` };
  }

  async acknowledge(callbackId: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    return isDone(await this.#call('answerCallbackQuery', { callback_query_id: callbackId }, signal));
  }

  /** Registers our webhook at Telegram: unlike other channels, Telegram has an API call for that. */
  async registerWebhook(
    { url, secretToken }: { readonly url: string; readonly secretToken: string },
    signal: AbortSignal,
  ): Promise<CredentialCheck> {
    const answer = await this.#call('setWebhook', { url, secret_token: secretToken, allowed_updates: UPDATES }, signal);
    if ('failure' in answer) return { state: 'unreachable', message: answer.reason };
    if (isDone(answer)) return { state: 'valid', account: url };
    return { state: 'refused', message: readProblem(answer) };
  }

  /**
   * Whether Telegram no longer delivers to these addresses. A bot whose messages go to another address by now stays
   * unchanged.
   */
  async removeWebhook(urls: readonly string[], signal: AbortSignal): Promise<boolean> {
    const found = await this.findWebhook(signal);
    if ('failure' in found || signal.aborted) return false;
    if (!urls.includes(found.url)) return true;
    return isDone(await this.#call('deleteWebhook', {}, signal));
  }

  /** Never throws: `reason` contains what could not be found out. */
  async findWebhook(
    signal: AbortSignal,
  ): Promise<TelegramWebhook | { readonly failure: 'refused' | NoAnswer['failure']; readonly reason: string }> {
    const answer = await this.#call('getWebhookInfo', {}, signal);
    if ('failure' in answer) return answer;
    const read = WebhookInfo.safeParse(answer.body);
    if (!read.success) return { failure: 'refused', reason: readProblem(answer) };
    const { url, pending_update_count: waitingUpdates, last_error_message: lastError, allowed_updates: allowed } = read.data.result;
    // Without a list Telegram delivers these and more.
    const missingUpdates = allowed === undefined || allowed.length === 0 ? [] : UPDATES.filter((update) => !allowed.includes(update));
    return { url, waitingUpdates, lastError, missingUpdates };
  }

  async fetchFile({ file, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    if (file.id === null) throw unnamed();
    const answer = await this.#call('getFile', { file_id: file.id }, signal);
    if ('failure' in answer) throw new FileUnavailableError('unreachable', answer.reason);
    const found = FileAddress.safeParse(answer.body);
    if (!found.success) throw unavailable(answer);
    const { file_path: path, file_size: size } = found.data.result;
    if ((size ?? 0) > maxBytes) throw new FileUnavailableError('too_large', `The file is larger than ${String(maxBytes)} bytes.`);
    const escaped = path.split('/').map(encodeURIComponent).join('/');
    return download({
      url: below(this.#base, `file/bot${this.#token}/${escaped}`),
      maxBytes,
      sources: mediaSources,
      base: this.#base,
      signal,
    });
  }

  #checkName({ id, username }: z.infer<typeof Bot>['result']): CredentialCheck {
    const named = this.#botUsername;
    if (username === undefined) return { state: 'valid', account: String(id) };
    if (named !== undefined && named.toLowerCase() !== username.toLowerCase())
      return { state: 'mismatch', message: `The bot token belongs to the bot ${username}.` };
    return { state: 'valid', account: username, identifiers: { botUsername: username } };
  }

  async #call(method: string, body: object, signal: AbortSignal): Promise<ProviderAnswer | NoAnswer> {
    const url = below(this.#base, `bot${this.#token}/${method}`);
    return askProvider({ url, body, signal, ...(this.#timeoutMs !== undefined && { timeoutMs: this.#timeoutMs }) });
  }
}

/** `@name` is a channel's; all others are numbers, which are sent as such. */
function toChat({ to, thread }: Destination): object {
  return { chat_id: /^-?\d{1,16}$/u.test(to) ? Number(to) : to, ...(thread !== undefined && { message_thread_id: Number(thread) }) };
}

/**
 * Telegram counts messages in each chat: a group that has another number by now has other messages under the same ones.
 */
function buildReplyParameters({ to, replyTo }: OutgoingMessage): object {
  const [chat, id] = replyTo?.split('/') ?? [];
  if (chat !== to || id === undefined || !/^\d{1,15}$/u.test(id)) return {};
  return { reply_parameters: { message_id: Number(id), allow_sending_without_reply: true } };
}

function isDone(answer: ProviderAnswer | NoAnswer): boolean {
  return 'status' in answer && answer.status === 200 && Done.safeParse(answer.body).success;
}

function readProblem({ status, body }: ProviderAnswer): string {
  return Problem.safeParse(body).data?.description ?? `Telegram answered with status ${String(status)}.`;
}

function unavailable({ body }: ProviderAnswer): FileUnavailableError {
  const description = Problem.safeParse(body).data?.description ?? '';
  if (description.includes('file is too big'))
    return new FileUnavailableError('too_large', 'Telegram gives bots no file of more than 20 MB.');
  return new FileUnavailableError('gone', 'Telegram does not have the file any more.');
}
