import type { MessengerSettings } from '@concierge/contract';
import { z } from 'zod';
import { askGraph, checkGraphAccount, graphErrors, classifyGraphSend, type GraphAccess } from '../meta/meta.ts';
import type { NoAnswer, ProviderAnswer } from '../outbound/ask-provider.ts';
import type { ChannelSender, CredentialCheck, OutgoingMessage, TypingRequest, SenderOptions } from '../outbound/channel-sender.ts';
import { download, unnamed, type FetchedFile, type FileRequest, type MediaSources } from '../outbound/fetch-file.ts';
import type { SendOutcome } from '../outbound/send-outcome.ts';

const Sent = z.object({ message_id: z.string().min(1) });

const errors = graphErrors({
  ordinary: [2, 4, 17, 32, 613, 1200],
  // The code alone is a missing permission: what is meant stands in the subcode.
  window_closed: ['10/2018278', '10/2534022'],
  // They blocked the page, or turned messages off: any other subcode of a permission is about this contact, too, since
  // no single contact may disable a binding.
  recipient_failed: [551, '100/2018001', '200/1545041', '10/2018108', '10/*', '200/*'],
  // The last: the app is not live, and writes to its own developers alone.
  binding_failed: [10, 190, '200/2018028'],
});

/** The page's token is never sent there. */
export const mediaSources: MediaSources = { withToken: [], open: ['fbcdn.net', 'fbsbx.com', 'cdninstagram.com'] };

const REFERENCE_MAX_CHARACTERS = 1000;

export function classifyMessengerSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  return classifyGraphSend(answer, { readId: (body) => Sent.safeParse(body).data?.message_id, errors });
}

/** Messenger, and Instagram through the page it is linked with. */
export class MessengerSender implements ChannelSender {
  /** The indicator disappears after some 20 seconds. */
  readonly typingRepeatMs = 15_000;
  readonly #pageId: string;
  readonly #access: GraphAccess;
  readonly #timeoutMs: number | undefined;

  constructor(settings: Pick<MessengerSettings, 'pageId' | 'accessToken'>, { urls, timeoutMs }: SenderOptions) {
    this.#pageId = settings.pageId;
    this.#access = { base: urls.metaGraph, token: settings.accessToken };
    this.#timeoutMs = timeoutMs;
  }

  async send({ to, part, form, reference }: OutgoingMessage, signal: AbortSignal): Promise<SendOutcome> {
    const text = form === 'plain' ? part.plain : part.text;
    const message = { text, ...(reference !== undefined && { metadata: reference.slice(0, REFERENCE_MAX_CHARACTERS) }) };
    return classifyMessengerSend(await this.#ask({ recipient: { id: to }, messaging_type: 'RESPONSE', message }, signal));
  }

  async showTyping({ to }: TypingRequest, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const answer = await this.#ask({ recipient: { id: to }, sender_action: 'typing_on' }, signal);
    return 'status' in answer && answer.status === 200;
  }

  async checkCredentials(signal: AbortSignal): Promise<CredentialCheck> {
    return checkGraphAccount(this.#access, { id: this.#pageId, fields: 'id,name' }, signal);
  }

  /** The addresses open by themselves, for a while: the page's token is never sent there. */
  async fetchFile({ file, maxBytes }: FileRequest, signal: AbortSignal): Promise<FetchedFile> {
    if (file.url === null) throw unnamed();
    return download({ url: file.url, maxBytes, sources: mediaSources, base: this.#access.base, signal });
  }

  async #ask(body: object, signal: AbortSignal): Promise<ProviderAnswer | NoAnswer> {
    return askGraph(this.#access, { path: `${encodeURIComponent(this.#pageId)}/messages`, body, signal, timeoutMs: this.#timeoutMs });
  }
}
