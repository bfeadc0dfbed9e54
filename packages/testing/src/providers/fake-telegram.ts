import { escapedJson, FakeProvider, type ProviderCall, type ProviderReply } from './fake-provider.ts';
import { findBodyProblem, telegramBodies, type BodyProblem } from './request-bodies.ts';
import { postWebhook, type WebhookTry } from './webhook-post.ts';

const TEXT_MAX = 4096;
const FILE_MAX_BYTES = 20 * 1024 * 1024;
/** White space and characters that show nothing. */
const INVISIBLE = /[\s\p{Cf}\u115F\u1160\u2800\u3164\uFFA0]/gu;
const TAGS = /<(?<close>\/?)(?<name>b|i|s|u|a|code|pre|blockquote)(?: [^<>]*)?>/gu;

interface Webhook {
  readonly url: string;
  readonly secret_token: string;
  readonly allowed_updates: readonly unknown[];
}

/**
 * Bot API: reads the markup of messages as strictly as the real one, brings the updates of a chat one after the other.
 */
export class FakeTelegram extends FakeProvider {
  readonly #token: string;
  readonly #files = new Map<string, Uint8Array>();
  readonly #gone = new Map<string, ProviderReply>();
  readonly #chats = new Map<string, Promise<unknown>>();
  #webhook: Webhook | undefined;
  #failed: { readonly last_error_message: string; readonly pending_update_count: number } | undefined;
  #messageId = 1000;

  constructor({ botToken }: { readonly botToken: string }) {
    super();
    this.#token = botToken;
  }

  /** TELEGRAM_API_URL */
  get url(): string {
    return this.origin;
  }

  get sent(): Readonly<Record<string, unknown>>[] {
    return this.callsTo('/sendMessage').map(({ body }) => body);
  }

  get webhook(): Webhook | undefined {
    return this.#webhook;
  }

  addFile(id: string, bytes: Uint8Array): void {
    this.#files.set(id, bytes);
  }

  /** They blocked the bot: 403 from now on. */
  block(chat: number): void {
    this.#gone.set(String(chat), botError(403, 'Forbidden: bot was blocked by the user'));
  }

  /** The group became a supergroup with another id. */
  migrate(chat: number, to: number): void {
    const description = 'Bad Request: group chat was upgraded to a supergroup chat';
    this.#gone.set(String(chat), botError(400, description, { migrate_to_chat_id: to }));
  }

  /** Delivers after the earlier updates of the same chat, and again until it is taken; 410 ends the webhook. */
  async deliver(chat: number, update: object): Promise<WebhookTry[]> {
    const before = this.#chats.get(String(chat)) ?? Promise.resolve();
    const delivery = before.then(async () => this.#bring(update));
    this.#chats.set(
      String(chat),
      delivery.catch(() => undefined),
    );
    return delivery;
  }

  async #bring(update: object): Promise<WebhookTry[]> {
    const webhook = this.#webhook;
    if (webhook === undefined) return [];
    const buildHeaders = () => ({ 'x-telegram-bot-api-secret-token': webhook.secret_token });
    const tries = await postWebhook({
      url: webhook.url,
      body: escapedJson(update),
      buildHeaders,
      timeoutMs: 60_000,
      retryDelaysMs: [0, 2, 4, 8, 16, 32],
    });
    const last = tries.at(-1);
    this.#failed =
      last?.status === 200
        ? undefined
        : { last_error_message: `Wrong response from the webhook: ${String(last?.status)}`, pending_update_count: 1 };
    if (last?.status === 410) this.#webhook = undefined;
    if (last?.status === 200) this.#execute(last.body);
    return tries;
  }

  /** An answer to a webhook that names a method is a call of it. */
  #execute(body: string): void {
    if (!body.includes('"method"')) return;
    // eslint-disable-next-line typescript/no-unsafe-type-assertion -- the real one takes any object here too
    const { method, ...fields } = JSON.parse(body) as Record<string, unknown>;
    const call = {
      method: 'POST',
      path: `/bot${this.#token}/${String(method)}`,
      query: new URLSearchParams(),
      headers: {},
      body: fields,
    };
    this.calls.push(call);
    this.reply(call);
  }

  protected override isSend({ path }: ProviderCall): boolean {
    return path.endsWith('/sendMessage');
  }

  protected override reply(call: ProviderCall): ProviderReply {
    const filePath = `/file/bot${this.#token}/`;
    if (call.path.startsWith(filePath)) return this.#fileBytes(call.path.slice(filePath.length));
    if (!call.path.startsWith(`/bot${this.#token}/`)) return botError(401, 'Unauthorized');
    return this.#method(call.path.slice(`/bot${this.#token}/`.length), call.body);
  }

  #method(method: string, body: ProviderCall['body']): ProviderReply {
    const refusal = findRefusal(method, body);
    if (refusal !== undefined) return refusal;
    switch (method) {
      case 'getMe':
        return done({ id: Number(this.#token.split(':')[0]), is_bot: true, username: 'corner_shop_bot' });
      case 'setWebhook':
        return this.#setWebhook(body);
      case 'deleteWebhook':
        this.#webhook = undefined;
        this.#failed = undefined;
        return done(true);
      case 'getWebhookInfo':
        return this.#webhookInfo();
      case 'sendMessage':
        return this.#sendMessage(body);
      case 'editMessageText':
        return botError(400, 'Bad Request: message is not modified: specified new message content is exactly the same');
      case 'sendChatAction':
        return this.#chatAction(body);
      case 'answerCallbackQuery':
        return done(true);
      case 'getFile':
        return this.#getFile(String(body['file_id']));
      default:
        return botError(404, 'Not Found');
    }
  }

  #webhookInfo(): ProviderReply {
    const { url = '', allowed_updates: allowed = [] } = this.#webhook ?? {};
    return done({ url, pending_update_count: 0, ...(allowed.length > 0 && { allowed_updates: allowed }), ...this.#failed });
  }

  #chatAction({ chat_id: chat }: ProviderCall['body']): ProviderReply {
    return this.#gone.get(String(chat)) ?? done(true);
  }

  #setWebhook(body: ProviderCall['body']): ProviderReply {
    const { url, secret_token: secret, allowed_updates: allowed } = body;
    if (!URL.canParse(String(url))) return botError(400, 'Bad Request: invalid webhook URL specified');
    if (typeof secret !== 'string' || !/^[\w-]{1,256}$/u.test(secret))
      return botError(400, 'Bad Request: secret token contains illegal characters');
    this.#webhook = { url: String(url), secret_token: secret, allowed_updates: Array.isArray(allowed) ? allowed : [] };
    return done(true);
  }

  #sendMessage({ chat_id: chat, text: given, parse_mode: mode }: ProviderCall['body']): ProviderReply {
    const gone = this.#gone.get(String(chat));
    if (gone !== undefined) return gone;
    const text = String(given);
    const problem = mode === 'HTML' ? problemOfHtml(text) : undefined;
    if (problem !== undefined) return botError(400, `Bad Request: can't parse entities: ${problem}`);
    const shown = mode === 'HTML' ? text.replaceAll(TAGS, '').replaceAll(/&(?:lt|gt|amp|quot);/gu, '&') : text;
    if (shown.replaceAll(INVISIBLE, '') === '') return botError(400, 'Bad Request: message text is empty');
    if (shown.length > TEXT_MAX) return botError(400, 'Bad Request: message is too long');
    this.#messageId += 1;
    return done({ message_id: this.#messageId, date: 0, chat: { id: chat }, text: shown });
  }

  #getFile(id: string): ProviderReply {
    const bytes = this.#files.get(id);
    if (bytes === undefined) return botError(400, 'Bad Request: wrong file_id or the file is temporarily unavailable');
    if (bytes.length > FILE_MAX_BYTES) return botError(400, 'Bad Request: file is too big');
    return done({ file_id: id, file_size: bytes.length, file_path: `documents/${id}` });
  }

  #fileBytes(path: string): ProviderReply {
    const bytes = this.#files.get(path.replace('documents/', ''));
    return bytes === undefined ? botError(404, 'Not Found') : { headers: { 'content-type': 'application/octet-stream' }, body: bytes };
  }
}

/** A field of the wrong type is a parse error, which `allow_sending_without_reply` does not help. */
function findRefusal(method: string, body: ProviderCall['body']): ProviderReply | undefined {
  const schema = Object.entries(telegramBodies).find(([name]) => name === method)?.[1];
  const problem = schema === undefined ? undefined : findBodyProblem(schema, body);
  return problem === undefined ? undefined : botError(400, `Bad Request: ${describeProblem(problem)}`);
}

const missing: ReadonlyMap<string, string> = new Map([
  ['chat_id', 'chat_id is empty'],
  ['text', 'message text is empty'],
  ['url', 'bad webhook: an HTTPS URL must be provided'],
]);

function describeProblem({ kind, path, expected }: BodyProblem): string {
  const field = path.split('.').at(-1) ?? '';
  if (kind === 'unknown') return `unexpected field "${path}"`;
  if (kind === 'missing') return missing.get(path) ?? `can't find field "${field}"`;
  if (path === 'chat_id') return 'chat not found';
  return kind === 'wrong_type'
    ? `Field "${field}" must be ${expected === 'int' || expected === 'number' ? 'a Number' : `of type ${expected}`}`
    : `wrong parameter ${field} in request: ${expected}`;
}

function problemOfHtml(html: string): string | undefined {
  const open: string[] = [];
  for (const { groups } of html.matchAll(TAGS)) {
    const name = groups?.['name'] ?? '';
    if (groups?.['close'] === '') open.push(name);
    else if (open.pop() !== name) return `Unexpected end tag </${name}>`;
  }
  if (open.length > 0) return `Can't find end tag corresponding to start tag ${String(open.at(-1))}`;
  return html.replaceAll(TAGS, '').includes('<') ? 'Unsupported start tag' : undefined;
}

function done(result: unknown): ProviderReply {
  return { body: { ok: true, result } };
}

/** An error of the Bot API. */
export function botError(code: number, description: string, parameters?: object): ProviderReply {
  const headers = parameters !== undefined && 'retry_after' in parameters ? { 'retry-after': String(parameters.retry_after) } : {};
  return { status: code, headers, body: { ok: false, error_code: code, description, ...(parameters && { parameters }) } };
}
