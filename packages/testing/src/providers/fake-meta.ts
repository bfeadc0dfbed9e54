import { DAY_MS } from '@concierge/contract';
import { createHmac, randomUUID } from 'node:crypto';
import { escapedJson, FakeProvider, type ProviderCall, type ProviderReply } from './fake-provider.ts';
import { messengerBodies, findBodyProblem, whatsAppMessage, whatsAppRead, type BodyProblem } from './request-bodies.ts';
import { postWebhook, type WebhookTry } from './webhook-post.ts';

const ANSWER_TIMEOUT_MS = 20_000;
const PAIR_BURST = 45;
const PAIR_INTERVAL_MS = 6000;
const MEDIA_LIFE_MS = 5 * 60_000;
const WHATSAPP_TEXT_MAX = 4096;
const MESSENGER_TEXT_MAX = 2000;
const INSTAGRAM_TEXT_MAX_BYTES = 1000;

export interface FakeMetaOptions {
  readonly accessToken: string;
  readonly appSecret: string;
  readonly phoneNumberId: string;
  readonly pageId: string;
  readonly now?: () => number;
}

/** How a webhook is delivered. */
export interface MetaDelivery {
  readonly retryDelaysMs?: readonly number[];
  /** An answer that takes longer counts as none. */
  readonly timeoutMs?: number;
}

export interface MetaWebhook {
  readonly url: string;
  readonly verifyToken: string;
}

/**
 * Graph API with a WhatsApp number and a page: windows, pair limits, media in two steps, receipts in the wrong order.
 */
export class FakeMeta extends FakeProvider {
  readonly #options: FakeMetaOptions;
  readonly #lastInboundMs = new Map<string, number>();
  readonly #sentAtMs = new Map<string, number[]>();
  readonly #instagramPeople = new Set<string>();
  readonly #media = new Map<string, { readonly bytes: Uint8Array; readonly contentType: string; shownAtMs: number }>();
  #webhook: MetaWebhook | undefined;

  constructor(options: FakeMetaOptions) {
    super();
    this.#options = options;
  }

  /** META_GRAPH_URL */
  get url(): string {
    return `${this.origin}/v23.0`;
  }

  /** A contact wrote: the reply window is open for a day. */
  personWrites(person: string): void {
    this.#lastInboundMs.set(person, this.#now());
  }

  /** A contact wrote to the Instagram account of the page: messages to it have the limit of Instagram. */
  personWritesOnInstagram(person: string): void {
    this.#instagramPeople.add(person);
    this.personWrites(person);
  }

  addMedia(id: string, file: { readonly bytes: Uint8Array; readonly contentType: string }): void {
    this.#media.set(id, { ...file, shownAtMs: Number.NEGATIVE_INFINITY });
  }

  /** The address of a file that Messenger sends: open to all who know it. */
  publicUrl(id: string): string {
    return `${this.origin}/public-media/${id}`;
  }

  /** What was sent, refused messages included, in order. */
  get sent(): Readonly<Record<string, unknown>>[] {
    return this.callsTo('/messages')
      .map(({ body }) => body)
      .filter(({ text, template, message }) => text !== undefined || template !== undefined || message !== undefined);
  }

  /** Registers an address as the App Dashboard does. @throws when the address does not give the challenge back */
  async register(webhook: MetaWebhook): Promise<void> {
    const challenge = String(Date.now());
    const query = new URLSearchParams({ 'hub.mode': 'subscribe', 'hub.challenge': challenge, 'hub.verify_token': webhook.verifyToken });
    const response = await fetch(`${webhook.url}?${query.toString()}`);
    const body = await response.text();
    if (response.status !== 200 || body !== challenge)
      throw new Error(`The callback URL could not be validated: ${String(response.status)}`);
    this.#webhook = webhook;
  }

  /** Signs the bytes as they go out, escapes included, and delivers them again until they are taken. */
  async deliver(
    payload: object,
    { retryDelaysMs = [1, 5, 25, 125], timeoutMs = ANSWER_TIMEOUT_MS }: MetaDelivery = {},
  ): Promise<WebhookTry[]> {
    if (this.#webhook === undefined) throw new Error('Register a webhook first.');
    return this.#bring(this.#webhook.url, payload, { retryDelaysMs, timeoutMs });
  }

  /**
   * Delivers once to `url`, whatever is registered: a load balancer that chose this gateway. @returns the status; 0
   * without an answer
   */
  async deliverTo(url: string, payload: object): Promise<number> {
    const [only] = await this.#bring(url, payload, { retryDelaysMs: [], timeoutMs: ANSWER_TIMEOUT_MS });
    return only?.status ?? 0;
  }

  async #bring(url: string, payload: object, delivery: Required<MetaDelivery>): Promise<WebhookTry[]> {
    const body = escapedJson(payload);
    const signature = createHmac('sha256', this.#options.appSecret).update(body).digest('hex');
    const buildHeaders = () => ({ 'x-hub-signature-256': `sha256=${signature}` });
    return postWebhook({ url, body, buildHeaders, ...delivery });
  }

  /** The receipts that WhatsApp sends for an accepted message: `read` before `delivered` before `sent`. */
  async deliverReceipts(messageId: string, recipient: string): Promise<void> {
    const { phoneNumberId } = this.#options;
    for (const status of ['read', 'delivered', 'sent']) {
      const statuses = [{ id: messageId, status, timestamp: String(Math.floor(this.#now() / 1000)), recipient_id: recipient }];
      const value = { messaging_product: 'whatsapp', metadata: { phone_number_id: phoneNumberId }, statuses };
      await this.deliver({ object: 'whatsapp_business_account', entry: [{ id: 'waba', changes: [{ field: 'messages', value }] }] });
    }
  }

  protected override isSend({ path, body }: ProviderCall): boolean {
    return path.endsWith('/messages') && body['status'] === undefined && body['sender_action'] === undefined;
  }

  protected override reply(call: ProviderCall): ProviderReply {
    const { accessToken, phoneNumberId } = this.#options;
    const [first = '', second] = call.path
      .replace(/^\/v[\d.]+\//u, '')
      .split('/')
      .filter(Boolean);
    if (first === 'public-media') return this.#publicBytes(second ?? '');
    if (first === 'media-bytes') return this.#mediaBytes(call, second ?? '');
    const token = call.headers.authorization?.replace('Bearer ', '');
    // The real one quotes what it refuses, too.
    if (token !== accessToken) return graphError(190, `Malformed access token ${String(token)}`, { status: 401 });
    if (second === 'messages') return first === phoneNumberId ? this.#whatsApp(call) : this.#page(call);
    return this.#account(first) ?? this.#mediaPlace(first);
  }

  #account(id: string): ProviderReply | undefined {
    const { phoneNumberId, pageId } = this.#options;
    if (id === phoneNumberId) return { body: { id, display_phone_number: '15550783881' } };
    return id === pageId ? { body: { id, name: 'The Corner Shop' } } : undefined;
  }

  #whatsApp({ body }: ProviderCall): ProviderReply {
    const isRead = body['status'] === 'read';
    const problem = findBodyProblem(isRead ? whatsAppRead : whatsAppMessage(body), body);
    if (problem !== undefined) return whatsAppRefusal(problem);
    if (isRead) return { body: { success: true } };
    const person = String(body['to'] ?? body['recipient']);
    if (textIn(body['text'], 'body').length > WHATSAPP_TEXT_MAX)
      return graphError(100, 'Invalid parameter', { details: "Param text['body'] must be at most 4096 characters long." });
    if (body['type'] === 'text' && !this.#isWindowOpen(person)) return graphError(131047, 'Re-engagement message');
    if (this.#isPairFull(person)) return graphError(131056, 'Pair rate limit hit');
    return { body: { messaging_product: 'whatsapp', contacts: [{ input: person }], messages: [{ id: `wamid.${randomUUID()}` }] } };
  }

  #page({ body }: ProviderCall): ProviderReply {
    const isAction = body['sender_action'] !== undefined;
    const problem = findBodyProblem(isAction ? messengerBodies.action : messengerBodies.message, body);
    if (problem !== undefined) return messengerRefusal(problem);
    const person = textIn(body['recipient'], 'id');
    if (isAction) return { body: { recipient_id: person } };
    const text = textIn(body['message'], 'text');
    if (text.length > MESSENGER_TEXT_MAX) return graphError(100, 'Length of param message[text] must be less than or equal to 2000');
    if (this.#instagramPeople.has(person) && Buffer.byteLength(text) > INSTAGRAM_TEXT_MAX_BYTES)
      return graphError(100, 'Length of param message[text] must be less than or equal to 1000 bytes');
    if (!this.#isWindowOpen(person)) return graphError(10, 'This message is sent outside of allowed window.', { subcode: 2018278 });
    return { body: { recipient_id: person, message_id: `m_${randomUUID()}` } };
  }

  #isWindowOpen(person: string): boolean {
    return this.#now() - (this.#lastInboundMs.get(person) ?? Number.NEGATIVE_INFINITY) < DAY_MS;
  }

  #isPairFull(person: string): boolean {
    const recent = (this.#sentAtMs.get(person) ?? []).filter((at) => this.#now() - at < PAIR_BURST * PAIR_INTERVAL_MS);
    this.#sentAtMs.set(person, [...recent, this.#now()]);
    return recent.length >= PAIR_BURST;
  }

  #mediaPlace(id: string): ProviderReply {
    const media = this.#media.get(id);
    if (media === undefined) return graphError(100, `Unsupported get request. Object with ID '${id}' does not exist`, { subcode: 33 });
    media.shownAtMs = this.#now();
    return { body: { id, url: `${this.origin}/media-bytes/${id}`, mime_type: media.contentType, file_size: media.bytes.length } };
  }

  #mediaBytes(call: ProviderCall, id: string): ProviderReply {
    const media = this.#media.get(id);
    if (media === undefined || this.#now() - media.shownAtMs > MEDIA_LIFE_MS) return { status: 404, body: '' };
    if (call.headers.authorization !== `Bearer ${this.#options.accessToken}`) return { status: 401, body: '' };
    return { headers: { 'content-type': media.contentType }, body: media.bytes };
  }

  #publicBytes(id: string): ProviderReply {
    const media = this.#media.get(id);
    return media === undefined
      ? { status: 403, body: 'URL signature expired' }
      : { headers: { 'content-type': media.contentType }, body: media.bytes };
  }

  #now(): number {
    return (this.#options.now ?? Date.now)();
  }
}

function whatsAppRefusal({ kind, path, expected }: BodyProblem): ProviderReply {
  const field = path.replace('.', "['") + (path.includes('.') ? "']" : '');
  if (kind === 'unknown') return graphError(100, 'Invalid parameter', { details: `Unexpected key "${field}" on param.` });
  if (kind === 'missing') return graphError(131_008, 'Required parameter is missing', { details: `Parameter ${field} is mandatory.` });
  if (kind === 'wrong_type') return graphError(100, 'Invalid parameter', { details: `Param ${field} must be a ${expected}.` });
  return graphError(131_009, 'Parameter value is not valid', { details: `Param ${field}: ${expected}` });
}

function messengerRefusal({ kind, path, expected }: BodyProblem): ProviderReply {
  const field = path.replace('.', '[') + (path.includes('.') ? ']' : '');
  if (kind === 'unknown') return graphError(100, `Invalid keys "${path.split('.').at(-1) ?? ''}" were found in param "${field}".`);
  if (kind === 'missing') return graphError(100, `The parameter ${field} is required`);
  if (path.startsWith('recipient')) return graphError(100, 'No matching user found', { subcode: 2_018_001 });
  return graphError(100, `Param ${field} must be ${expected}`);
}

function textIn(value: unknown, field: string): string {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, field) : undefined;
  return typeof found === 'string' ? found : '';
}

/** An error object of the Graph API. */
export function graphError(
  code: number,
  message: string,
  { status = 400, subcode, details }: { status?: number; subcode?: number; details?: string } = {},
): ProviderReply {
  const error = {
    message: `(#${String(code)}) ${message}`,
    type: 'OAuthException',
    code,
    fbtrace_id: 'Afake',
    ...(subcode !== undefined && { error_subcode: subcode }),
    ...(details !== undefined && { error_data: { messaging_product: 'whatsapp', details } }),
  };
  return { status, body: { error } };
}
