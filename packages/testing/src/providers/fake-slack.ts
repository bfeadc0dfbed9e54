import { createHmac } from 'node:crypto';
import { FakeProvider, type ProviderCall, type ProviderReply } from './fake-provider.ts';
import { findBodyProblem, slackBodies } from './request-bodies.ts';
import { postWebhook, type WebhookTry } from './webhook-post.ts';

/** The real one cuts what is longer, without a word. */
const TEXT_MAX = 40_000;
const ACKNOWLEDGE_WITHIN_MS = 3000;
const BOT_ID = 'B0FAKE';
const APP_ID = 'A0FAKE';

export interface FakeSlackOptions {
  readonly botToken: string;
  readonly signingSecret: string;
  readonly teamId: string;
  readonly botUserId: string;
  /** Without `users:read` it does not list bots. */
  readonly scopes?: readonly string[];
}

/**
 * Web API and Events API of one workspace: what the bot posts comes back to it as an event, as it does in the real one.
 */
export class FakeSlack extends FakeProvider {
  readonly #options: FakeSlackOptions;
  readonly #files = new Map<string, { readonly bytes: Uint8Array; readonly contentType: string }>();
  readonly #streams = new Set<string>();
  #eventsUrl: string | undefined;
  #ts = 1_700_000_000;
  #events = 0;

  constructor(options: FakeSlackOptions) {
    super();
    this.#options = options;
  }

  /** SLACK_API_URL */
  get url(): string {
    return `${this.origin}/api`;
  }

  get sent(): Readonly<Record<string, unknown>>[] {
    return this.callsTo('/chat.postMessage').map(({ body }) => body);
  }

  addFile(id: string, file: { readonly bytes: Uint8Array; readonly contentType: string }): void {
    this.#files.set(id, file);
  }

  /** `url_private` of a file. */
  fileUrl(id: string): string {
    return `${this.origin}/files-pri/${id}`;
  }

  /** Verifies the request URL as Slack does when it is saved. @throws when it does not give the challenge back */
  async register(url: string): Promise<void> {
    const challenge = `challenge-${String(Date.now())}`;
    const [first] = await this.#post(url, { type: 'url_verification', token: 'unused', challenge }, []);
    if (first?.status !== 200 || !first.body.includes(challenge))
      throw new Error('Your URL didn’t respond with the value of the challenge parameter.');
    this.#eventsUrl = url;
  }

  /** Signs each of four tries, and delivers a message that mentions the bot as two events. */
  async deliver(event: object): Promise<WebhookTry[]> {
    if (this.#eventsUrl === undefined) throw new Error('Register a request URL first.');
    this.#events += 1;
    const body = {
      type: 'event_callback',
      team_id: this.#options.teamId,
      api_app_id: APP_ID,
      event_id: `Ev${String(this.#events).padStart(8, '0')}`,
      event_time: Math.floor(Date.now() / 1000),
      event,
    };
    return this.#post(this.#eventsUrl, body, [0, 1, 5]);
  }

  async deliverMention(event: {
    readonly channel: string;
    readonly user: string;
    readonly text: string;
    readonly ts: string;
  }): Promise<WebhookTry[]> {
    const mention = await this.deliver({ type: 'app_mention', ...event });
    return [...mention, ...(await this.deliver({ type: 'message', channel_type: 'channel', ...event }))];
  }

  async #post(url: string, payload: object, retryDelaysMs: readonly number[]): Promise<WebhookTry[]> {
    const body = JSON.stringify(payload);
    const buildHeaders = (attempt: number, reason: string): Record<string, string> => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const digest = createHmac('sha256', this.#options.signingSecret).update(`v0:${timestamp}:${body}`).digest('hex');
      const retry = { 'x-slack-retry-num': String(attempt), 'x-slack-retry-reason': reason };
      return { 'x-slack-request-timestamp': timestamp, 'x-slack-signature': `v0=${digest}`, ...(attempt > 0 && retry) };
    };
    return postWebhook({ url, body, buildHeaders, timeoutMs: ACKNOWLEDGE_WITHIN_MS, retryDelaysMs });
  }

  protected override isSend({ path }: ProviderCall): boolean {
    return path.endsWith('/chat.postMessage');
  }

  protected override async reply(call: ProviderCall): Promise<ProviderReply> {
    const isKnown = call.headers.authorization === `Bearer ${this.#options.botToken}`;
    const [, file] = call.path.split('/files-pri/');
    if (file !== undefined)
      return isKnown ? this.#fileBytes(file) : { body: '<!DOCTYPE html><html><head><title>Slack</title></head></html>' };
    if (!isKnown) return slackError('invalid_auth');
    return this.#method(call.path.replace('/api/', ''), call);
  }

  async #method(method: string, { body, query }: ProviderCall): Promise<ProviderReply> {
    const { teamId, botUserId } = this.#options;
    const refusal = findRefusal(method, body);
    if (refusal !== undefined) return refusal;
    switch (method) {
      case 'auth.test':
        return { body: { ok: true, team: 'Corner Shop', team_id: teamId, user_id: botUserId, bot_id: BOT_ID } };
      case 'bots.info':
        return this.#botInfo(query.get('bot'));
      case 'chat.postMessage':
        return this.#postMessage(body);
      case 'assistant.threads.setStatus':
        return { body: { ok: true } };
      case 'files.info':
        return this.#fileInfo(query.get('file') ?? '');
      case 'chat.startStream':
        this.#streams.add(this.#nextTs());
        return { body: { ok: true, ts: [...this.#streams].at(-1) } };
      case 'chat.appendStream':
      case 'chat.stopStream':
        return this.#stream(method, String(body['ts']));
      default:
        return slackError('unknown_method');
    }
  }

  async #postMessage({ channel, text: given, thread_ts: thread }: ProviderCall['body']): Promise<ProviderReply> {
    const text = typeof given === 'string' ? given : '';
    if (text.trim() === '') return slackError('no_text');
    if (text.length > TEXT_MAX) return slackError('msg_too_long');
    const ts = this.#nextTs();
    const user = this.#options.botUserId;
    // The bot's own messages have no subtype: only the ids identify them.
    const echo = { type: 'message', channel, user, bot_id: BOT_ID, text, ts, ...(thread !== undefined && { thread_ts: thread }) };
    if (this.#eventsUrl !== undefined) await this.deliver({ ...echo, channel_type: 'im' });
    return { body: { ok: true, channel, ts, message: { text } } };
  }

  #botInfo(bot: string | null): ProviderReply {
    if (!(this.#options.scopes ?? ['users:read']).includes('users:read')) return slackError('missing_scope');
    return bot === BOT_ID ? { body: { ok: true, bot: { id: bot, app_id: APP_ID } } } : slackError('bot_not_found');
  }

  #stream(method: string, ts: string): ProviderReply {
    if (!this.#streams.has(ts)) return slackError('message_not_in_streaming_state');
    if (method === 'chat.stopStream') this.#streams.delete(ts);
    return { body: { ok: true, ts } };
  }

  #fileInfo(id: string): ProviderReply {
    const file = this.#files.get(id);
    if (file === undefined) return slackError('file_not_found');
    return { body: { ok: true, file: { id, size: file.bytes.length, url_private: this.fileUrl(id) } } };
  }

  #fileBytes(id: string): ProviderReply {
    const file = this.#files.get(id);
    return file === undefined ? { status: 404, body: '' } : { headers: { 'content-type': file.contentType }, body: file.bytes };
  }

  #nextTs(): string {
    this.#ts += 1;
    return `${String(this.#ts)}.000100`;
  }
}

function findRefusal(method: string, body: ProviderCall['body']): ProviderReply | undefined {
  const schema = Object.entries(slackBodies).find(([name]) => name === method)?.[1];
  const problem = schema === undefined ? undefined : findBodyProblem(schema, body);
  if (problem === undefined) return undefined;
  if (problem.kind === 'unknown') return slackError('invalid_arg_name');
  if (problem.path.startsWith('channel')) return slackError('channel_not_found');
  return slackError(problem.path === 'thread_ts' && problem.kind === 'wrong_value' ? 'invalid_thread_ts' : 'invalid_arguments');
}

/** Errors of Slack come with status 200. */
export function slackError(error: string): ProviderReply {
  return { body: { ok: false, error } };
}
