import type { WhatsAppSettings } from '@concierge/contract';
import { z } from 'zod';
import { askGraph, checkGraphAccount, graphErrors, classifyGraphSend, type GraphAccess } from '../meta/meta.ts';
import type { NoAnswer, ProviderAnswer } from '../outbound/ask-provider.ts';
import type {
  ChannelSender,
  CredentialCheck,
  OutgoingMessage,
  OutgoingTemplate,
  TypingRequest,
  SenderOptions,
} from '../outbound/channel-sender.ts';
import { download, FileUnavailableError, unnamed, type FetchedFile, type FileRequest, type MediaSources } from '../outbound/fetch-file.ts';
import type { SendOutcome } from '../outbound/send-outcome.ts';

const Sent = z.object({ messages: z.tuple([z.object({ id: z.string().min(1) })], z.unknown()) });

const errors = graphErrors({
  ordinary: [2, 4, 80007, 130429, 131016, 131057],
  pair: [131056],
  few: [131000],
  window_closed: [131047],
  recipient_failed: [131026, 131050, 130472],
  binding_failed: [0, 3, 10, 190, 131005, 131031, 131042],
  // Asking again makes a restriction for bad quality worse.
  refused: [131048, 131049, 131064, 368],
});

/** Numbers are digits; the other names of people, since user names came, begin with a country (§2.2). */
const TELEPHONE_NUMBER = /^\+?\d+$/u;
const BUSINESS_SCOPED_ID = /^[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}$/u;

const MediaAddress = z.object({ url: z.string(), file_size: z.number().optional() });
export const mediaSources: MediaSources = { withToken: ['lookaside.fbsbx.com'], open: [] };

const REFERENCE_MAX_CHARACTERS = 512;

export function classifyWhatsAppSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  return classifyGraphSend(answer, { readId: (body) => Sent.safeParse(body).data?.messages[0].id, errors });
}

/** WhatsApp Cloud API. */
export class WhatsAppSender implements ChannelSender {
  /** The indicator disappears after 25 seconds. */
  readonly typingRepeatMs = 20_000;
  readonly #phoneNumberId: string;
  readonly #access: GraphAccess;
  readonly #timeoutMs: number | undefined;

  constructor(settings: Pick<WhatsAppSettings, 'phoneNumberId' | 'accessToken'>, { urls, timeoutMs }: SenderOptions) {
    this.#phoneNumberId = settings.phoneNumberId;
    this.#access = { base: urls.metaGraph, token: settings.accessToken };
    this.#timeoutMs = timeoutMs;
  }

  async send(message: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const body = message.form === 'plain' ? message.part.plain : message.part.text;
    return this.#sendContent(
      {
        ...toRecipient(message.to),
        type: 'text',
        // A preview is a request to an address that a model wrote, made before a reader has seen it.
        text: { body, preview_url: false },
        ...(message.replyTo !== undefined && { context: { message_id: message.replyTo } }),
        ...(message.reference !== undefined && { biz_opaque_callback_data: message.reference.slice(0, REFERENCE_MAX_CHARACTERS) }),
      },
      signal,
    );
  }

  async sendTemplate({ to, name, language, bodyParameters }: OutgoingTemplate, signal: AbortSignal): Promise<SendOutcome> {
    const parameters = bodyParameters.map((text) => ({ type: 'text', text }));
    const components = parameters.length > 0 ? [{ type: 'body', parameters }] : [];
    return this.#sendContent(
      { ...toRecipient(to), type: 'template', template: { name, language: { code: language }, components } },
      signal,
    );
  }

  /** Marks the message as read as well, and all before it: the two are one call. */
  async showTyping({ inboundMessageId }: TypingRequest, signal: AbortSignal): Promise<boolean> {
    if (inboundMessageId === undefined || signal.aborted) return false;
    const answer = await this.#ask({ status: 'read', message_id: inboundMessageId, typing_indicator: { type: 'text' } }, signal);
    return 'status' in answer && answer.status === 200;
  }

  async checkCredentials(signal: AbortSignal): Promise<CredentialCheck> {
    return checkGraphAccount(this.#access, { id: this.#phoneNumberId, fields: 'id,display_phone_number' }, signal);
  }

  async fetchFile({ file, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    if (file.id === null) throw unnamed();
    const path = `${encodeURIComponent(file.id)}?phone_number_id=${encodeURIComponent(this.#phoneNumberId)}`;
    const answer = await askGraph(this.#access, { path, signal });
    if ('failure' in answer) throw new FileUnavailableError('unreachable', answer.reason);
    const found = MediaAddress.safeParse(answer.body);
    if (answer.status !== 200 || !found.success) throw new FileUnavailableError('gone', 'WhatsApp does not have the file any more.');
    if ((found.data.file_size ?? 0) > maxBytes)
      throw new FileUnavailableError('too_large', `The file is larger than ${String(maxBytes)} bytes.`);
    return download({
      url: found.data.url,
      headers: { authorization: `Bearer ${this.#access.token}` },
      maxBytes,
      sources: mediaSources,
      base: this.#access.base,
      signal,
    });
  }

  async #sendContent(content: object, signal: AbortSignal): Promise<SendOutcome> {
    return classifyWhatsAppSend(await this.#ask(content, signal));
  }

  async #ask(body: object, signal: AbortSignal): Promise<ProviderAnswer | NoAnswer> {
    const path = `${encodeURIComponent(this.#phoneNumberId)}/messages`;
    return askGraph(this.#access, { path, body: { messaging_product: 'whatsapp', ...body }, signal, timeoutMs: this.#timeoutMs });
  }
}

/**
 * An address that is neither a contact's number nor a contact's name is a group: sent as if to a contact, an answer to
 * a group is refused.
 */
function toRecipient(to: string): object {
  if (BUSINESS_SCOPED_ID.test(to)) return { recipient_type: 'individual', recipient: to };
  return { recipient_type: TELEPHONE_NUMBER.test(to) ? 'individual' : 'group', to };
}
