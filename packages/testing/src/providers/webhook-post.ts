import { setTimeout } from 'node:timers/promises';
import { answerDeadline } from '@concierge/runtime/process';

export interface WebhookPost {
  readonly url: string;
  readonly body: string;
  /** Built for each try: Slack signs the time and sends the number of the try. */
  readonly buildHeaders: (attempt: number, reason: string) => Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Delays between the tries. A provider's minutes are milliseconds here. */
  readonly retryDelaysMs: readonly number[];
}

export interface WebhookTry {
  /** 0 when there was no answer in time. */
  readonly status: number;
  readonly body: string;
  readonly retryAfterSeconds: number | undefined;
}

/** Delivers until it is taken or the tries are used up; returns the result of each try. */
export async function postWebhook(post: WebhookPost): Promise<WebhookTry[]> {
  const tries: WebhookTry[] = [];
  for (const delayMs of [0, ...post.retryDelaysMs]) {
    const last = tries.at(-1);
    // `Retry-After` of the receiver counts, in milliseconds instead of seconds.
    if (last !== undefined) await setTimeout(last.retryAfterSeconds ?? delayMs);
    const current = await tryOnce(post, tries.length);
    tries.push(current);
    if ((current.status >= 200 && current.status < 300) || current.status === 410) break;
  }
  return tries;
}

async function tryOnce({ url, body, buildHeaders, timeoutMs }: WebhookPost, attempt: number): Promise<WebhookTry> {
  try {
    const headers = { 'content-type': 'application/json', ...buildHeaders(attempt, 'http_error') };
    // An answer that arrived while this process stood still was in time: another try would count as a delivery more.
    const response = await fetch(url, { method: 'POST', body, headers, signal: answerDeadline(timeoutMs) });
    const retryAfter = response.headers.get('retry-after');
    return {
      status: response.status,
      body: await response.text(),
      retryAfterSeconds: retryAfter === null ? undefined : Number(retryAfter),
    };
  } catch {
    return { status: 0, body: '', retryAfterSeconds: undefined };
  }
}
