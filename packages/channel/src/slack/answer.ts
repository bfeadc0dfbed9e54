import { z } from 'zod';
import { outcomeOfNoAnswer, outcomeOfStatus, retryAfterMs, type NoAnswer, type ProviderAnswer } from '../outbound/ask-provider.ts';
import { failed, retry, type FinalKind, type SendOutcome } from '../outbound/send-outcome.ts';

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
export function outcomeOfSlackSend(answer: ProviderAnswer | NoAnswer): SendOutcome {
  if ('failure' in answer) return outcomeOfNoAnswer(answer);
  const sent = Sent.safeParse(answer.body);
  if (sent.success) return { kind: 'sent', providerMessageId: sent.data.ts };
  const refused = Refused.safeParse(answer.body);
  if (!refused.success) return outcomeOfStatus(answer);
  const code = refused.data.error;
  const problem = { code, message: `Slack answered ${code}.` };
  const kind = errors.get(code) ?? 'refused';
  return kind === 'retry' ? retry(problem, { afterMs: retryAfterMs(answer.headers) }) : failed(kind, problem);
}
