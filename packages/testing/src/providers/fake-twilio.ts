import { createHmac } from 'node:crypto';
import { FakeProvider, type ProviderCall, type ProviderReply } from './fake-provider.ts';
import { findBodyProblem, twilioMessage } from './request-bodies.ts';
import { postWebhook, type WebhookTry } from './webhook-post.ts';

const BODY_MAX_CHARACTERS = 1600;
const ACKNOWLEDGE_WITHIN_MS = 15_000;
const NUMBER = /^(?:whatsapp:)?\+[1-9]\d{6,14}$/u;

export interface FakeTwilioOptions {
  readonly accountSid: string;
  readonly authToken: string;
  /** Numbers of the account, as they are written: with `whatsapp:` before those of WhatsApp. */
  readonly senders: readonly string[];
  readonly messagingServiceSid?: string;
}

type Fields = Readonly<Record<string, string>>;

interface Addresses {
  readonly to: string;
  /** Empty where the service chooses. */
  readonly from: string;
  readonly service: string | undefined;
}

/**
 * Programmable Messaging of one account: forms in, forms out. Webhooks are brought once, as Twilio does where it is not
 * asked for more.
 */
export class FakeTwilio extends FakeProvider {
  readonly #options: FakeTwilioOptions;
  readonly #media = new Map<string, { readonly bytes: Uint8Array; readonly contentType: string }>();
  readonly #optedOut = new Set<string>();
  #status = 'active';
  #count = 0;

  constructor(options: FakeTwilioOptions) {
    super();
    this.#options = options;
  }

  /** TWILIO_API_URL */
  get url(): string {
    return this.origin;
  }

  get sent(): Readonly<Record<string, unknown>>[] {
    return this.callsTo('/Messages.json').map(({ body }) => body);
  }

  addMedia(id: string, file: { readonly bytes: Uint8Array; readonly contentType: string }): void {
    this.#media.set(id, file);
  }

  /** `MediaUrl0` of a message: leads on to where the bytes are. */
  mediaUrl(id: string): string {
    return `${this.origin}/2010-04-01/Accounts/${this.#options.accountSid}/Messages/MM1/Media/${id}`;
  }

  /** They wrote STOP: 21610 from now on. */
  optOut(address: string): void {
    this.#optedOut.add(address);
  }

  suspend(): void {
    this.#status = 'suspended';
  }

  /** A form to a webhook, signed with the address that it is set to, which a proxy may bring to `through`. */
  async deliver(fields: Fields, { url, through = url }: { readonly url: string; readonly through?: string }): Promise<WebhookTry[]> {
    const form = { AccountSid: this.#options.accountSid, ApiVersion: '2010-04-01', ...fields };
    const signature = twilioSignature(this.#options.authToken, { url, fields: form });
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8', 'x-twilio-signature': signature };
    const body = new URLSearchParams(form).toString();
    return postWebhook({ url: through, body, buildHeaders: () => headers, timeoutMs: ACKNOWLEDGE_WITHIN_MS, retryDelaysMs: [] });
  }

  protected override isSend({ path }: ProviderCall): boolean {
    return path.endsWith('/Messages.json');
  }

  protected override reply(call: ProviderCall): ProviderReply {
    const { accountSid, authToken } = this.#options;
    const file = /^\/store\/(?<id>\w+)$/u.exec(call.path)?.groups?.['id'];
    if (file !== undefined) return this.#mediaBytes(file);
    const known = `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`;
    if (call.headers.authorization !== known) return twilioError(20003, 'Authenticate', { status: 401 });
    const resource = call.path.replace(`/2010-04-01/Accounts/${accountSid}`, '');
    if (call.method === 'GET' && resource === '.json')
      return { body: { sid: accountSid, friendly_name: 'Corner Shop', status: this.#status, type: 'Full' } };
    const media = /^\/Messages\/\w+\/Media\/(?<id>\w+)$/u.exec(resource)?.groups?.['id'];
    if (media !== undefined) return { status: 307, headers: { location: `${this.origin}/store/${media}` }, body: '' };
    if (call.method === 'POST' && resource === '/Messages.json') return this.#createMessage(call);
    return twilioError(20404, `The requested resource ${call.path} was not found`, { status: 404 });
  }

  #createMessage({ body, headers }: ProviderCall): ProviderReply {
    if (headers['content-type']?.startsWith('application/x-www-form-urlencoded') !== true)
      return twilioError(20001, 'Unsupported content type', { status: 415 });
    const refusal = this.#findRefusal(body);
    if (refusal !== undefined) return refusal;
    this.#count += 1;
    const sid = `SM${String(this.#count).padStart(32, '0')}`;
    const { accountSid: account_sid } = this.#options;
    const about = { account_sid, to: body['To'], from: body['From'] ?? null, body: body['Body'], num_media: '0' };
    return { status: 201, body: { sid, status: 'queued', ...about, error_code: null, error_message: null } };
  }

  #findRefusal(body: ProviderCall['body']): ProviderReply | undefined {
    const given = new Map(Object.entries(body).map(([name, value]) => [name, String(value)]));
    const [to, from, text] = [given.get('To') ?? '', given.get('From') ?? '', given.get('Body') ?? ''] as const;
    const service = given.get('MessagingServiceSid');
    if (to === '') return twilioError(21604, "A 'To' phone number is required.");
    if (from === '' && service === undefined) return twilioError(21603, "A 'From' phone number is required.");
    if (text.trim() === '') return twilioError(21602, 'Message body is required.');
    if (text.length > BODY_MAX_CHARACTERS)
      return twilioError(21617, `The concatenated message body exceeds the ${String(BODY_MAX_CHARACTERS)} character limit`);
    const problem = findBodyProblem(twilioMessage, body);
    if (problem !== undefined) return twilioError(20001, `Invalid parameter ${problem.path}`);
    return this.#refusedAddress({ to, from, service });
  }

  #refusedAddress({ to, from, service }: Addresses): ProviderReply | undefined {
    const { senders, messagingServiceSid } = this.#options;
    if (!NUMBER.test(to)) return twilioError(21211, `The 'To' number ${to} is not a valid phone number.`);
    if (service !== undefined && service !== messagingServiceSid)
      return twilioError(21705, `The Messaging Service Sid ${service} is invalid.`);
    if (from !== '' && !senders.includes(from)) {
      if (from.startsWith('whatsapp:')) return twilioError(63007, 'Twilio could not find a Channel with the specified From address');
      return twilioError(
        21606,
        `The 'From' phone number provided (${from}) is not a valid message-capable Twilio phone number for this account.`,
      );
    }
    if (from !== '' && from.startsWith('whatsapp:') !== to.startsWith('whatsapp:'))
      return twilioError(21910, "Invalid 'From' and 'To' pair. 'From' and 'To' should be of the same channel");
    return this.#optedOut.has(to) ? twilioError(21610, 'Attempt to send to unsubscribed recipient') : undefined;
  }

  #mediaBytes(id: string): ProviderReply {
    const file = this.#media.get(id);
    return file === undefined ? { status: 404, body: '' } : { headers: { 'content-type': file.contentType }, body: file.bytes };
  }
}

/** Signs as Twilio's security page describes. */
export function twilioSignature(authToken: string, { url, fields }: { readonly url: string; readonly fields: Fields }): string {
  const signed = Object.keys(fields)
    .toSorted()
    .map((name) => `${name}${fields[name] ?? ''}`);
  return createHmac('sha1', authToken)
    .update([url, ...signed].join(''))
    .digest('base64');
}

export function twilioError(code: number, message: string, { status = 400 }: { readonly status?: number } = {}): ProviderReply {
  return { status, body: { code, message, more_info: `https://www.twilio.com/docs/errors/${String(code)}`, status } };
}
