import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { WidgetBody, type WidgetTeam } from '@concierge/contract';
import type { TenantScope } from '@concierge/tenant';
import { eventually, silentLog as log } from '@concierge/testing';
import { TestCore } from '@concierge/testing/core';
import { setUpEach } from '@concierge/testing/set-up';
import { UnansweredHandoffs } from '@concierge/turn';
import { readConfig } from '../src/config.ts';
import { Mailer } from '../src/mailer.ts';
import { TestMailbox } from './test-mailbox.ts';

let opened: TestCore;
let scope: TenantScope;
let mailbox: TestMailbox;
let nowMs: number;

const contact = { kind: 'contact', channel: 'web', sender: 'visitor:x' } as const;
const sessionId = 'a'.repeat(32);

setUpEach(async (stack) => {
  opened = stack.use(await TestCore.start());
  mailbox = stack.use(await TestMailbox.open());
  scope = await opened.scope();
  nowMs = Date.now();
  await scope.events.endpoints.create({ url: 'https://example.com/hook', types: ['handoff.unanswered'] });
});

/** As a process of the service looks. */
async function look(mail = mailbox.url): Promise<void> {
  const { tenants, redis, events } = opened.core;
  const mailer = new Mailer({ smtpUrl: mail, from: 'Concierge <concierge@example.com>' });
  const sendEmail = mailer.sendUnanswered.bind(mailer);
  const parts = { tenants, redis, webhookEvents: events.outgoing, sendEmail, log, now: () => nowMs };
  await new UnansweredHandoffs(parts).lookAtAll();
}

async function lookAfter(minutes: number): Promise<void> {
  nowMs += minutes * 60_000;
  await look();
}

async function setTeam(team: Partial<WidgetTeam>): Promise<void> {
  await scope.widget.put(WidgetBody.parse({ team: { alert: { afterMinutes: 10, email: 'owner@shop.example' }, ...team } }));
}

async function listEvents(): Promise<unknown[]> {
  const { items } = await scope.events.list({ limit: 20 });
  return items.map(({ type, data }) => ({ type, data }));
}

async function answerAsStaff(): Promise<void> {
  const at = new Date().toISOString();
  const facts = { version: 1, revision: 1, createdAt: at, updatedAt: at, title: 't', messageCount: 1, summary: null } as const;
  const said = { id: randomUUID(), turnId: 't', at, role: 'assistant', text: 'Jo here.', by: { kind: 'operator' } } as const;
  const owner = { agent: 'cs', channel: 'web', sender: 'visitor:x' } as const;
  await scope.sessions.publish({ id: sessionId, ...facts, ...owner, messages: [said], turns: [], contextTokens: null });
}

describe('a conversation that nobody answers', () => {
  it('is reported to the owner once, by an e-mail and an event, after the minutes that they set', async () => {
    await setTeam({});
    const { view } = await scope.handoffs.request(sessionId, { reason: 'Wants a refund\r\nBcc: all@example.com', by: contact });
    // It was requested by the machine's clock, on a busy one some seconds after the set-up.
    nowMs = Date.parse(view.since);
    await lookAfter(9);
    expect(mailbox.letters).toEqual([]);
    await lookAfter(1.1);
    expect(mailbox.letters).toMatchObject([{ to: ['owner@shop.example'], from: 'concierge@example.com' }]);
    const text = mailbox.letters[0]?.text ?? '';
    expect(text).toContain(`Message-ID: <${view.id}@example.com>`);
    expect(text).toContain('Wants a refund');
    await lookAfter(60);
    expect(mailbox.letters).toHaveLength(1);
    expect(await listEvents()).toMatchObject([
      { type: 'handoff.unanswered', data: { handoffId: view.id, contact_id: sessionId, since: view.since, afterMinutes: 10 } },
    ]);
    // The next handoff is another one.
    await scope.handoffs.resume(sessionId, { kind: 'operator' });
    await look();
    await scope.handoffs.request(sessionId, { reason: 'Again', by: contact });
    await lookAfter(20);
    expect(mailbox.letters).toHaveLength(2);
  });

  it('is not reported when a staff member has answered, or it was given back', async () => {
    await setTeam({});
    await scope.handoffs.request(sessionId, { reason: 'Help', by: contact });
    await answerAsStaff();
    await scope.handoffs.request('b'.repeat(32), { reason: 'Help', by: contact });
    await scope.handoffs.resume('b'.repeat(32), { kind: 'operator' });
    await lookAfter(60);
    expect(mailbox.letters).toEqual([]);
    expect(await listEvents()).toEqual([]);
  });

  it('waits for the office hours, whose first minutes count', async () => {
    const day = new Date(nowMs + 86_400_000).toLocaleDateString('en-US', { weekday: 'short', timeZone: 'UTC' }).toLowerCase();
    const hours = WidgetBody.parse({ team: { hours: [{ day, from: '12:00', until: '13:00' }] } }).team;
    await setTeam({ hours: hours.hours });
    await scope.handoffs.request(sessionId, { reason: 'At night', by: contact });
    const noon = Math.floor(nowMs / 86_400_000 + 1) * 86_400_000 + 12 * 3_600_000;
    nowMs = noon;
    await lookAfter(9);
    expect(mailbox.letters).toEqual([]);
    await lookAfter(1);
    expect(mailbox.letters).toHaveLength(1);
  });

  it('is reported again until the server has taken the e-mail', async () => {
    await setTeam({});
    await scope.handoffs.request(sessionId, { reason: 'Help', by: contact });
    nowMs += 11 * 60_000;
    mailbox.refuse = true;
    await look();
    mailbox.refuse = false;
    await lookAfter(1.1);
    await eventually(() => mailbox.letters.length === 1);
    expect(await listEvents()).toHaveLength(1);
  });

  it('is tried less and less often while the server takes nothing, whichever process looks', async () => {
    await setTeam({});
    await scope.handoffs.request(sessionId, { reason: 'Help', by: contact });
    mailbox.refuse = true;
    await lookAfter(11);
    // As often as processes look.
    for (let looks = 0; looks < 60; looks += 1) await lookAfter(0.5);
    // At once, and after one, two, four and eight minutes and a quarter of an hour; later by up to a tenth of each.
    expect(mailbox.tries).toBeGreaterThanOrEqual(5);
    expect(mailbox.tries).toBeLessThanOrEqual(6);
    mailbox.refuse = false;
    await lookAfter(17);
    expect(mailbox.letters).toHaveLength(1);
    // The next handoff has not failed yet.
    await scope.handoffs.resume(sessionId, { kind: 'operator' });
    await look();
    await scope.handoffs.request(sessionId, { reason: 'Again', by: contact });
    await lookAfter(20);
    expect(mailbox.letters).toHaveLength(2);
  });

  it('is reported by the event alone where the owner names no address', async () => {
    await setTeam({ alert: { afterMinutes: 1, email: null } });
    await scope.handoffs.request(sessionId, { reason: 'Help', by: contact });
    await lookAfter(2);
    expect(mailbox.letters).toEqual([]);
    expect(await listEvents()).toHaveLength(1);
  });
});

it.each([
  ['SMTP_URL', 'http://mail.example.com'],
  ['SMTP_FROM', 'nobody'],
])('a bad %s is refused at the start', (name, value) => {
  const env = { REDIS_URL: 'redis://localhost', KEY_SECRET: 'k'.repeat(40), [name]: value };
  expect(() => readConfig(env)).toThrow(name);
});
