import { z } from 'zod';
import { outcomeOfNoAnswer, outcomeOfStatus, retryAfterMs, type NoAnswer, type ProviderAnswer } from '../outbound/ask-provider.ts';
import { failed, retry, type FinalKind, type SendOutcome } from '../outbound/send-outcome.ts';

const Sent = z.object({ ok: z.literal(true), result: z.object({ message_id: z.number() }) });

const Refused = z.object({
  ok: z.literal(false),
  error_code: z.number(),
  description: z.string().default(''),
  parameters: z.object({ retry_after: z.number().optional(), migrate_to_chat_id: z.number().optional() }).default({}),
});
type Refused = z.infer<typeof Refused>;

/** The only mark of these cases is the sentence: Telegram has one code for all of them. */
const sentences: readonly (readonly [RegExp, FinalKind])[] = [
  [/can't parse (?:entities|message text|caption)|unsupported start tag|can't find end/iu, 'resend_plain'],
  [/message to (?:be replied|reply) not found|replied message not found/iu, 'resend_without_reply'],
  [/chat not found|user not found|PEER_ID_INVALID|CHAT_WRITE_FORBIDDEN|not enough rights|have no rights/iu, 'recipient_failed'],
];

/** The outcome of a call that sends. */
export function outcomeOfTelegramSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  if ('failure' in answer) return outcomeOfNoAnswer(answer);
  const sent = Sent.safeParse(answer.body);
  if (sent.success) return { kind: 'sent', providerMessageId: String(sent.data.result.message_id) };
  const refused = Refused.safeParse(answer.body);
  return refused.success ? outcomeOfRefusal(refused.data, answer.headers) : outcomeOfStatus(answer);
}

function outcomeOfRefusal(refused: Refused, headers: Headers): SendOutcome {
  const { error_code: code, description, parameters } = refused;
  const problem = { code: String(code), message: description };
  if (code === 429) {
    const seconds = parameters.retry_after;
    return retry(problem, { afterMs: seconds === undefined ? retryAfterMs(headers) : seconds * 1000 });
  }
  if (code >= 500) return retry(problem);
  if (code === 401 || code === 404) return failed('binding_failed', problem);
  if (code === 403) return failed('recipient_failed', problem);
  return outcomeOfBadRequest(refused);
}

function outcomeOfBadRequest({ error_code: code, description, parameters }: Refused): SendOutcome {
  const problem = { code: String(code), message: description };
  const to = parameters.migrate_to_chat_id;
  if (to !== undefined) return { kind: 'resend_to', to: String(to), ...problem };
  // The text of an edit is there already.
  if (description.includes('message is not modified')) return { kind: 'sent', providerMessageId: undefined };
  return failed(sentences.find(([sentence]) => sentence.test(description))?.[1] ?? 'refused', problem);
}
