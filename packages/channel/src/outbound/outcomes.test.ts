import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { classifyMessengerSend } from '../messenger/send.ts';
import { classifySlackSend } from '../slack/send.ts';
import { classifyTelegramSend } from '../telegram/send.ts';
import { classifyWhatsAppSend } from '../whatsapp/send.ts';
import type { NoAnswer, ProviderAnswer } from './ask-provider.ts';
import { replyWindow, type SendingRules } from './sending-rules.ts';
import { retryDelayMs, type SendOutcome } from './send-outcome.ts';
import { channelAdapters } from '../channel-adapters.ts';

const Answers = z.array(
  z.object({
    id: z.string(),
    response: z.object({ status: z.number(), headers: z.record(z.string(), z.string()), body: z.unknown() }),
    expected: z.object({
      class: z.string(),
      message_id: z.string().optional(),
      retry_after_ms: z.number().optional(),
      new_chat_id: z.string().optional(),
      max_attempts: z.number().optional(),
    }),
  }),
);

const answers = Answers.parse(JSON.parse(readFileSync(new URL('../../test/answers.json', import.meta.url), 'utf8')));

const readers: Readonly<Record<string, (answer: ProviderAnswer | NoAnswer) => SendOutcome>> = {
  whatsapp: classifyWhatsAppSend,
  messenger: classifyMessengerSend,
  telegram: classifyTelegramSend,
  slack: classifySlackSend,
};

function findOutcome(id: string, { status, headers, body }: z.infer<typeof Answers>[number]['response']): SendOutcome {
  const read = readers[id.split('/')[0] ?? ''];
  if (read === undefined) throw new Error(`No provider for ${id}`);
  return read({ status, headers: new Headers(headers), body: typeof body === 'string' ? undefined : body });
}

/** In the words of the list of answers. */
function classify(outcome: SendOutcome): string {
  const names = {
    sent: 'ok',
    refused: 'permanent',
    recipient_failed: 'recipient_unreachable',
    binding_failed: 'auth',
    window_closed: 'window_closed',
    resend_plain: 'resend_plain',
    resend_without_reply: 'resend_without_reply',
    resend_to: 'resend_to',
    unknown: 'unknown',
  };
  if (outcome.kind === 'retry') return outcome.afterMs === undefined ? 'retry_backoff' : 'retry_after';
  return names[outcome.kind];
}

function findDetails(outcome: SendOutcome): unknown[] {
  return [
    outcome.kind === 'sent' ? outcome.providerMessageId : undefined,
    outcome.kind === 'retry' ? outcome.afterMs : undefined,
    outcome.kind === 'resend_to' ? outcome.to : undefined,
  ];
}

// The page that Slack shows instead of a file is no answer to a send; see the integration tests.
const sends = answers.filter(({ id }) => id !== 'slack/file_download_login_page');

describe('an answer of a provider', () => {
  it.each(sends)('is understood: $id', ({ id, response, expected }) => {
    const outcome = findOutcome(id, response);
    expect(classify(outcome)).toBe(expected.class);
    expect(findDetails(outcome)).toEqual([expected.message_id, expected.retry_after_ms, expected.new_chat_id]);
  });

  it.each(answers.filter(({ expected }) => expected.max_attempts !== undefined))(
    'is tried as often as that: $id',
    ({ id, response, expected }) => {
      const outcome = findOutcome(id, response);
      if (outcome.kind !== 'retry') throw new Error('It is not to be tried again at all.');
      const tries = Array.from({ length: 20 }, (_, index) => index + 1).filter(
        (attempts) => retryDelayMs(outcome, { attempts, random: 0.5 }) !== undefined,
      );
      expect(tries.length + 1).toBe(expected.max_attempts);
    },
  );

  it('is cut to what a status can hold', () => {
    const body = { ok: false, error_code: 400, description: 'x'.repeat(10_000) };
    expect(classifyTelegramSend({ status: 400, headers: new Headers(), body })).toMatchObject({
      kind: 'refused',
      message: 'x'.repeat(400),
    });
  });

  it('that is missing is one of a request that may have arrived, or of one that never left', () => {
    expect(classifySlackSend({ failure: 'lost', reason: 'Cut off.' })).toMatchObject({ kind: 'unknown', code: 'no_answer' });
    expect(classifySlackSend({ failure: 'never_left', reason: 'Connection refused.' })).toMatchObject({
      kind: 'retry',
      code: 'unreachable',
    });
  });
});

describe('the next try', () => {
  it('waits as long as the provider asks for, and a little more', () => {
    expect(retryDelayMs({ backoff: 'ordinary', afterMs: 35_741_000 }, { attempts: 1, random: 0 })).toBe(35_741_000);
    expect(retryDelayMs({ backoff: 'ordinary', afterMs: 1000 }, { attempts: 1, random: 1 })).toBe(2000);
  });

  it('comes later each time, and never when it was the last', () => {
    const delays = Array.from({ length: 11 }, (_, index) => retryDelayMs({ backoff: 'ordinary' }, { attempts: index + 1, random: 1 }));
    expect(delays.slice(0, 4)).toEqual([1000, 2000, 4000, 8000]);
    expect(delays.at(-1)).toBeUndefined();
  });

  it('waits 4^n seconds after too many messages to one contact', () => {
    expect([1, 2, 3].map((attempts) => retryDelayMs({ backoff: 'pair' }, { attempts, random: 0 }))).toEqual([4000, 16_000, 64_000]);
  });
});

const allRules = Object.values(channelAdapters).flatMap((adapter) => adapter.allRules);

function findRules(name: string): SendingRules {
  const rules = allRules.find((known) => known.name === name);
  if (rules === undefined) throw new Error(`no rules ${name}`);
  return rules;
}

describe('what is known before sending', () => {
  const lastInboundMs = Date.parse('2026-11-21T12:00:00Z');
  const hours = (count: number): number => lastInboundMs + count * 3_600_000;

  it('is whether Meta takes free text: for 24 hours after the contact last wrote', () => {
    expect(replyWindow(findRules('whatsapp'), { lastInboundMs, nowMs: hours(23.9) }).state).toBe('open');
    expect(replyWindow(findRules('instagram'), { lastInboundMs, nowMs: hours(24) }).state).toBe('closed');
    expect(replyWindow(findRules('messenger'), { lastInboundMs: undefined, nowMs: hours(0) })).toEqual({
      state: 'closed',
      sinceMs: undefined,
    });
  });

  it('is that Telegram and Slack have no window', () => {
    expect(replyWindow(findRules('telegram'), { lastInboundMs, nowMs: hours(9999) })).toEqual({ state: 'none' });
    expect(replyWindow(findRules('slack'), { lastInboundMs: undefined, nowMs: hours(0) })).toEqual({ state: 'none' });
  });

  it('is how fast a conversation may go', () => {
    expect(findRules('whatsapp').pace('49301')).toMatchObject({
      conversationIntervalMs: 6000,
      conversationBurst: 45,
      bindingPerSecond: 80,
    });
    expect(findRules('telegram').pace('-1001').conversationIntervalMs).toBeGreaterThan(
      findRules('telegram').pace('1001').conversationIntervalMs,
    );
  });
});
